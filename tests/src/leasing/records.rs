//! What is on record of leases and of calls that were denied.

use fleetgate_proto::v1 as pb;
use fleetgate_proto::v1::ledger_event::Entry;
use fleetgate_proto::v1::ledger_service_client::LedgerServiceClient;
use fleetgate_proto::v1::tail_commands_response::Item;
use tonic::transport::Channel;

use crate::facts::object;
use crate::{pause, soon};

/// One operation of the ledger.
#[derive(Debug, Clone, PartialEq)]
pub struct Done {
    /// Who.
    pub who: String,
    /// What.
    pub what: String,
    /// To what.
    pub target: String,
    /// The rest of it.
    pub detail: serde_json::Value,
}

impl Done {
    /// Who did what, in words.
    pub fn words(&self) -> String {
        format!("{} {}", self.who, self.what)
    }

    /// A text of the detail; empty if it is absent.
    pub fn detail(&self, key: &str) -> &str {
        self.detail[key].as_str().unwrap_or_default()
    }
}

/// All operations on record, the oldest first.
pub async fn operations(channel: Channel) -> Vec<Done> {
    let request = pb::TailCommandsRequest {
        until_now: true,
        ..pb::TailCommandsRequest::default()
    };
    let mut ledger = LedgerServiceClient::new(channel);
    let tail = ledger.tail_commands(request).await;
    let mut tail = tail.expect("TailCommands").into_inner();
    let mut done = Vec::new();
    while let Some(message) = soon("an event", tail.message()).await.expect("an event") {
        if let Some(Item::Event(event)) = message.item
            && let Some(Entry::Operation(operation)) = event.entry
        {
            let pb::Operation {
                who,
                what,
                target,
                detail,
            } = operation;
            done.push(Done {
                who,
                what,
                target: target.unwrap_or_default(),
                detail: object(detail.unwrap_or_default()),
            });
        }
    }
    done
}

/// What was done to a lease, in words.
pub async fn done_to(channel: Channel, lease: &str) -> Vec<String> {
    let operations = operations(channel).await;
    let own = operations.iter().filter(|done| done.target == lease);
    own.map(Done::words).collect()
}

/// The calls that were denied for this reason, once so many are on record: a
/// refusal does not wait for its record.
pub async fn denials(channel: Channel, reason: &str, count: usize) -> Vec<Done> {
    soon(&format!("{count} denials of {reason}"), async {
        loop {
            let operations = operations(channel.clone()).await;
            let denied = operations
                .into_iter()
                .filter(|done| done.what == "deny-call" && done.detail("reason") == reason);
            let denied: Vec<_> = denied.collect();
            if denied.len() >= count {
                return denied;
            }
            pause().await;
        }
    })
    .await
}
