//! `history --export` and `history --follow`: what the ledger has recorded,
//! the oldest first, and then as it happens.

use fleetgate_proto::v1::TailCommandsRequest;

use crate::client::{Asked, Client, Context};
use crate::output::{Format, note, reaches};
use crate::view::event::EventView;

/// What to print and how.
#[derive(Debug)]
pub(crate) struct Events {
    /// Go on after the event with this cursor.
    pub(crate) after: Option<String>,
    /// Wait for more.
    pub(crate) follow: bool,
    /// For people or for programs.
    pub(crate) format: Format,
}

impl Events {
    /// Prints them, until there are no more or nobody reads.
    pub(crate) async fn run(self, context: &Context) -> anyhow::Result<()> {
        let client = Client::connect(context).await?;
        let rejected = |status| client.rejected(&status, Asked::nothing());
        let request = TailCommandsRequest {
            from_now: self.follow && self.after.is_none(),
            until_now: !self.follow,
            after_cursor: self.after.unwrap_or_default(),
        };
        let stream = client.ledger().tail_commands(client.request(request)).await;
        let mut stream = stream.map_err(rejected)?.into_inner();
        let mut last = None;
        loop {
            let message = match stream.message().await {
                Ok(Some(message)) => message,
                Ok(None) => return Ok(()),
                Err(status) => {
                    if let Some(cursor) = last {
                        note(&format!("to go on: --after {cursor}"));
                    }
                    return Err(rejected(status).into());
                }
            };
            let Some(event) = EventView::of(message) else {
                continue;
            };
            if let Some(gap) = event.gap() {
                note(&format!("note: {gap}"));
            }
            let line = match self.format {
                Format::Table => event.text(),
                Format::Json => serde_json::to_string(&event)?,
            };
            if !reaches(&line)? {
                return Ok(());
            }
            last = Some(event.cursor().to_owned());
        }
    }
}
