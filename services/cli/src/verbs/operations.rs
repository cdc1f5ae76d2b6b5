//! `operations`: who did what besides commands, and which calls were denied,
//! page by page up to the limit.

use std::num::NonZeroU32;
use std::time::SystemTime;

use clap::Args;
use fleetgate_proto::v1::{ListOperationsRequest, OperationRecord};
use serde::Serialize;

use crate::args::ShortOutput;
use crate::client::{Asked, Client, Context};
use crate::output::print;
use crate::rejected::Rejected;
use crate::view::operation::{OperationView, lines};
use crate::when;

/// As many as a gateway gives at once.
const MAX_PAGE_SIZE: u32 = 1000;

/// List who did what, and which calls were denied, the newest first.
#[derive(Debug, Args)]
#[command(after_help = "\
It takes an operator of the whole fleet.

Examples:
  fleetgate operations --since 1h
  fleetgate operations --what deny-call --who token:ci
  fleetgate operations --target 00008110-000978540290401E -o json")]
pub(crate) struct Operations {
    /// Only by this principal, such as token:ci
    #[arg(long, value_name = "NAME")]
    who: Option<String>,
    /// Only of this kind, such as grant-lease, or deny-call for denied calls
    #[arg(long)]
    what: Option<String>,
    /// Only done to this: a UDID, a lease's id; of denied calls the method's path
    #[arg(long)]
    target: Option<String>,
    /// Only from then on: a time in UTC (2026-11-30T12:00:00Z) or how long ago
    /// (15m)
    #[arg(long, value_name = "WHEN", value_parser = when::parse)]
    since: Option<SystemTime>,
    /// At most so many
    #[arg(long, value_name = "N", default_value = "100")]
    limit: NonZeroU32,
    #[command(flatten)]
    pub(crate) output: ShortOutput,
}

/// The operations as JSON.
#[derive(Debug, Serialize)]
struct OperationsView {
    operations: Vec<OperationView>,
}

impl Operations {
    /// Lists them.
    pub(crate) async fn run(self, context: &Context) -> anyhow::Result<()> {
        let client = Client::connect(context).await?;
        let limit = self.limit.get();
        let records = list(&client, self.filters(), limit).await?;
        let view = OperationsView {
            operations: records.into_iter().map(OperationView::from).collect(),
        };
        print(context.format, &view, OperationsView::text)
    }

    fn filters(self) -> ListOperationsRequest {
        ListOperationsRequest {
            who: self.who.unwrap_or_default(),
            what: self.what.unwrap_or_default(),
            target: self.target.unwrap_or_default(),
            start_time: self.since.map(prost_types::Timestamp::from),
            page_size: 0,
            page_token: String::new(),
        }
    }
}

/// At most `limit` operations to which the filters apply, the newest first.
async fn list(
    client: &Client,
    filters: ListOperationsRequest,
    limit: u32,
) -> Result<Vec<OperationRecord>, Rejected> {
    let mut records: Vec<OperationRecord> = Vec::new();
    let mut page_token = String::new();
    loop {
        let wanted = limit.saturating_sub(u32::try_from(records.len()).unwrap_or(u32::MAX));
        let request = ListOperationsRequest {
            page_size: i32::try_from(wanted.min(MAX_PAGE_SIZE)).unwrap_or(i32::MAX),
            page_token,
            ..filters.clone()
        };
        let page = client
            .ledger()
            .list_operations(client.request(request))
            .await;
        let page = page
            .map_err(|status| client.rejected(&status, Asked::nothing()))?
            .into_inner();
        let wanted = usize::try_from(wanted).unwrap_or(usize::MAX);
        let complete = page.operations.len() >= wanted || page.next_page_token.is_empty();
        records.extend(page.operations.into_iter().take(wanted));
        if complete {
            return Ok(records);
        }
        page_token = page.next_page_token;
    }
}

impl OperationsView {
    fn text(&self) -> String {
        if self.operations.is_empty() {
            "no operations\n".to_owned()
        } else {
            lines(&self.operations)
        }
    }
}
