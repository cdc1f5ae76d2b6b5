//! What is on record of leases and of calls that were denied.

use fleetgate_proto::v1 as pb;
use fleetgate_proto::v1::ledger_event::Entry;
use fleetgate_proto::v1::ledger_service_client::LedgerServiceClient;
use fleetgate_proto::v1::tail_commands_response::Item;
use tonic::client::GrpcService;
use tonic::codegen::{Body, Bytes, StdError};

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

impl From<pb::Operation> for Done {
    fn from(operation: pb::Operation) -> Self {
        let pb::Operation {
            who,
            what,
            target,
            detail,
        } = operation;
        Self {
            who,
            what,
            target: target.unwrap_or_default(),
            detail: object(detail.unwrap_or_default()),
        }
    }
}

/// The ledger as somebody sees it.
#[derive(Debug, Clone)]
pub struct Records<T>(LedgerServiceClient<T>);

impl<T> Records<T>
where
    T: GrpcService<tonic::body::Body> + Clone,
    T::Error: Into<StdError>,
    T::ResponseBody: Body<Data = Bytes> + Send + 'static,
    <T::ResponseBody as Body>::Error: Into<StdError> + Send,
{
    /// What this client sees.
    pub fn by(ledger: LedgerServiceClient<T>) -> Self {
        Self(ledger)
    }

    /// All entries by now, the oldest first.
    pub async fn entries(&self) -> Vec<Entry> {
        let request = pb::TailCommandsRequest {
            until_now: true,
            ..pb::TailCommandsRequest::default()
        };
        let tail = self.0.clone().tail_commands(request).await;
        let mut tail = tail.expect("TailCommands").into_inner();
        let mut entries = Vec::new();
        while let Some(message) = soon("an event", tail.message()).await.expect("an event") {
            if let Some(Item::Event(event)) = message.item {
                entries.push(event.entry.expect("an entry"));
            }
        }
        entries
    }

    /// All operations by now, the oldest first.
    pub async fn operations(&self) -> Vec<Done> {
        let entries = self.entries().await.into_iter();
        let operations = entries.filter_map(|entry| match entry {
            Entry::Operation(operation) => Some(operation.into()),
            Entry::Intended(_)
            | Entry::Concluded(_)
            | Entry::Resolved(_)
            | Entry::Transition(_) => None,
        });
        operations.collect()
    }

    /// What was done to a lease, in words.
    pub async fn done_to(&self, lease: &str) -> Vec<String> {
        let operations = self.operations().await;
        let own = operations.iter().filter(|done| done.target == lease);
        own.map(Done::words).collect()
    }

    /// The calls that were denied for this reason, once so many are on record: a
    /// refusal does not wait for its record.
    pub async fn denials(&self, reason: &str, count: usize) -> Vec<Done> {
        let what = format!("{count} denials of {reason}");
        self.denied(reason, &what, |denied| denied.len() >= count)
            .await
    }

    /// The call that was denied for this reason and is like this, once it is on
    /// record.
    pub async fn denial(&self, reason: &str, is: impl Fn(&Done) -> bool) -> Done {
        let what = format!("a denial of {reason}");
        let denied = self.denied(reason, &what, |denied| denied.iter().any(&is));
        let own = denied.await.into_iter().find(is);
        own.expect("it is among them")
    }

    async fn denied(&self, reason: &str, what: &str, is: impl Fn(&[Done]) -> bool) -> Vec<Done> {
        let denied = async {
            loop {
                let operations = self.operations().await.into_iter();
                let denied = operations
                    .filter(|done| done.what == "deny-call" && done.detail("reason") == reason);
                let denied: Vec<_> = denied.collect();
                if is(&denied) {
                    return denied;
                }
                pause().await;
            }
        };
        soon(what, denied).await
    }
}
