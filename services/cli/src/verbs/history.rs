//! `history`: commands and their fates, page by page up to the limit; or the
//! ledger's events as they were and are recorded ([`events`]).

use std::num::NonZeroU32;
use std::time::SystemTime;

use clap::Args;
use fleetgate_proto::v1::{CommandKind, CommandRecord, Fate, ListCommandsRequest};
use serde::Serialize;

use crate::args::ShortOutput;
use crate::client::{Asked, Client, Context};
use crate::exit::Misuse;
use crate::output::{Format, print};
use crate::rejected::Rejected;
use crate::view::record::{RecordView, lines};
use crate::{when, words};

mod events;

use events::Events;

/// As many as a gateway gives at once.
const MAX_PAGE_SIZE: u32 = 1000;

/// What says nothing to a stream of events.
const FILTERS: [&str; 8] = [
    "device",
    "kind",
    "fate",
    "principal",
    "lease",
    "since",
    "until",
    "limit",
];

/// List commands and their fates, the newest first.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    fleetgate history --device anna --kind tap --since 15m\n  \
    fleetgate history --fate unknown --fate pending --limit 1000 -o json\n  \
    fleetgate history --export > ledger.jsonl\n  \
    fleetgate history --follow")]
pub(crate) struct History {
    /// Only of this device: UDID or alias
    #[arg(long)]
    device: Option<String>,
    /// Only of this kind; may be repeated
    #[arg(long, value_parser = words::kind_parser())]
    kind: Vec<CommandKind>,
    /// Only with this fate; may be repeated
    #[arg(long, value_parser = words::fate_parser())]
    fate: Vec<Fate>,
    /// Only what this principal asked for, such as token:ci
    #[arg(long, value_name = "NAME")]
    principal: Option<String>,
    /// Only what was carried out under this lease
    #[arg(long, value_name = "ID")]
    lease: Option<String>,
    /// Only from then on: a time in UTC (2026-11-30T12:00:00Z) or how long ago
    /// (15m)
    #[arg(long, value_name = "WHEN", value_parser = when::parse)]
    since: Option<SystemTime>,
    /// Only until then, in the same forms
    #[arg(long, value_name = "WHEN", value_parser = when::parse)]
    until: Option<SystemTime>,
    /// At most so many
    #[arg(long, value_name = "N", default_value = "100")]
    limit: NonZeroU32,
    /// Print every event of the ledger as JSON Lines, the oldest first. Each
    /// has a cursor
    #[arg(long, conflicts_with_all = FILTERS)]
    export: bool,
    /// Print every event from now on, as it is recorded
    #[arg(long, conflicts_with_all = FILTERS, conflicts_with = "export")]
    follow: bool,
    /// Go on after the event with this cursor, when exporting or following
    #[arg(long, value_name = "CURSOR", conflicts_with_all = FILTERS)]
    after: Option<String>,
    #[command(flatten)]
    pub(crate) output: ShortOutput,
}

/// The commands as JSON.
#[derive(Debug, Serialize)]
struct HistoryView {
    commands: Vec<RecordView>,
}

impl History {
    /// Lists them.
    pub(crate) async fn run(self, context: &Context) -> anyhow::Result<()> {
        if self.export || self.follow {
            let events = Events {
                after: self.after,
                follow: self.follow,
                format: if self.export {
                    Format::Json
                } else {
                    context.format
                },
            };
            return events.run(context).await;
        }
        if self.after.is_some() {
            let words = "--after goes with --export or --follow".to_owned();
            return Err(Misuse(words).into());
        }
        let client = Client::connect(context).await?;
        let limit = self.limit.get();
        let records = list(&client, self.filters(), limit).await?;
        let view = HistoryView {
            commands: records.into_iter().map(RecordView::from).collect(),
        };
        print(context.format, &view, HistoryView::text)
    }

    fn filters(self) -> ListCommandsRequest {
        ListCommandsRequest {
            device: self.device.unwrap_or_default(),
            kinds: self.kind.into_iter().map(i32::from).collect(),
            fates: self.fate.into_iter().map(i32::from).collect(),
            start_time: self.since.map(prost_types::Timestamp::from),
            end_time: self.until.map(prost_types::Timestamp::from),
            page_size: 0,
            page_token: String::new(),
            principal: self.principal.unwrap_or_default(),
            lease_id: self.lease.unwrap_or_default(),
        }
    }
}

/// At most `limit` commands to which the filters apply, the newest first.
pub(crate) async fn list(
    client: &Client,
    filters: ListCommandsRequest,
    limit: u32,
) -> Result<Vec<CommandRecord>, Rejected> {
    let mut records: Vec<CommandRecord> = Vec::new();
    let mut page_token = String::new();
    loop {
        let wanted = limit.saturating_sub(u32::try_from(records.len()).unwrap_or(u32::MAX));
        let request = ListCommandsRequest {
            page_size: page_size(wanted),
            page_token,
            ..filters.clone()
        };
        let page = client.ledger().list_commands(client.request(request)).await;
        let page = page
            .map_err(|status| client.rejected(&status, Asked::nothing()))?
            .into_inner();
        let wanted = usize::try_from(wanted).unwrap_or(usize::MAX);
        let complete = page.commands.len() >= wanted || page.next_page_token.is_empty();
        records.extend(page.commands.into_iter().take(wanted));
        if complete {
            return Ok(records);
        }
        page_token = page.next_page_token;
    }
}

fn page_size(wanted: u32) -> i32 {
    i32::try_from(wanted.min(MAX_PAGE_SIZE)).unwrap_or(i32::MAX)
}

impl HistoryView {
    fn text(&self) -> String {
        if self.commands.is_empty() {
            "no commands\n".to_owned()
        } else {
            lines(&self.commands)
        }
    }
}
