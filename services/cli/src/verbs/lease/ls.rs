//! `lease ls`: leases, page by page up to the limit.

use std::num::NonZeroU32;
use std::time::SystemTime;

use clap::Args;
use fleetgate_proto::v1::{Lease, LeaseState, ListLeasesRequest};
use serde::Serialize;

use crate::args::ShortOutput;
use crate::client::{Asked, Client, Context};
use crate::output::print;
use crate::rejected::Rejected;
use crate::view::lease::{LeaseView, table};
use crate::words;

/// As many as a gateway gives at once.
const MAX_PAGE_SIZE: u32 = 1000;

/// Those that have not ended.
const OPEN: [LeaseState; 4] = [
    LeaseState::Scheduled,
    LeaseState::Queued,
    LeaseState::Active,
    LeaseState::Draining,
];

/// List leases, the newest first.
#[derive(Debug, Args)]
#[command(after_help = "\
Those that have ended are left out, unless --all or --state asks for them.

Examples:
  fleetgate lease ls
  fleetgate lease ls --all --owner token:ci -o json")]
pub(super) struct Ls {
    /// Only in this state; may be repeated
    #[arg(long, value_parser = words::lease_state_parser())]
    state: Vec<LeaseState>,
    /// Also those that have ended
    #[arg(long, conflicts_with = "state")]
    all: bool,
    /// Only of this owner, such as token:ci
    #[arg(long, value_name = "NAME")]
    owner: Option<String>,
    /// Only those that were granted this phone: UDID or alias
    #[arg(long)]
    device: Option<String>,
    /// At most so many
    #[arg(long, value_name = "N", default_value = "100")]
    limit: NonZeroU32,
    #[command(flatten)]
    pub(super) output: ShortOutput,
}

/// The leases as JSON.
#[derive(Debug, Serialize)]
struct LeasesView {
    leases: Vec<LeaseView>,
}

impl Ls {
    /// Lists them.
    pub(super) async fn run(self, context: &Context) -> anyhow::Result<()> {
        let client = Client::connect(context).await?;
        let limit = self.limit.get();
        let leases = list(&client, self.filters(), limit).await?;
        let text = table(&leases, SystemTime::now());
        let view = LeasesView {
            leases: leases.into_iter().map(LeaseView::from).collect(),
        };
        print(context.format, &view, |_| text)
    }

    fn filters(self) -> ListLeasesRequest {
        let states = match (self.all, self.state) {
            (true, _) => Vec::new(),
            (false, states) if states.is_empty() => OPEN.to_vec(),
            (false, states) => states,
        };
        ListLeasesRequest {
            states: states.into_iter().map(i32::from).collect(),
            owner: self.owner.unwrap_or_default(),
            device: self.device.unwrap_or_default(),
            ..ListLeasesRequest::default()
        }
    }
}

/// At most `limit` leases to which the filters apply, the newest first.
async fn list(
    client: &Client,
    filters: ListLeasesRequest,
    limit: u32,
) -> Result<Vec<Lease>, Rejected> {
    let mut leases: Vec<Lease> = Vec::new();
    let mut page_token = String::new();
    loop {
        let wanted = limit.saturating_sub(u32::try_from(leases.len()).unwrap_or(u32::MAX));
        let request = ListLeasesRequest {
            page_size: i32::try_from(wanted.min(MAX_PAGE_SIZE)).unwrap_or(i32::MAX),
            page_token,
            ..filters.clone()
        };
        let page = client.leases().list_leases(client.request(request)).await;
        let page = page
            .map_err(|status| client.rejected(&status, Asked::nothing()))?
            .into_inner();
        let wanted = usize::try_from(wanted).unwrap_or(usize::MAX);
        let complete = page.leases.len() >= wanted || page.next_page_token.is_empty();
        leases.extend(page.leases.into_iter().take(wanted));
        if complete {
            return Ok(leases);
        }
        page_token = page.next_page_token;
    }
}
