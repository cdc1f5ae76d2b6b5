//! `lease create`: a wish for phones; with `--wait`, until they are there.

use clap::Args;

use super::acquire::{Acquire, Acquired, create, granted};
use super::show_one;
use super::wish::Wish;
use crate::args::ShortOutput;
use crate::client::{Client, Context};
use crate::exit::Exit;
use crate::signals::Signals;

/// Ask for phones.
#[derive(Debug, Args)]
#[command(after_help = "\
It does not wait: the lease is granted already, or waits in line, or has ended
for want of phones, which is exit code 9. With --wait it is printed once it is
granted, and progress goes to stderr; --timeout limits all of the wait, and ends
with exit code 4; then as with Ctrl-C the wish is taken back. A lease that is
granted ends after its ttl unless it is renewed.

Examples:
  fleetgate lease create --device anna --ttl 10m
  fleetgate lease create --selector pool=ci,rack=a --count 2 --wait -o json")]
pub(super) struct Create {
    #[command(flatten)]
    wish: Wish,
    /// Wait until it is granted
    #[arg(long)]
    wait: bool,
    #[command(flatten)]
    pub(super) output: ShortOutput,
}

impl Create {
    /// Asks.
    pub(super) async fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let request = self.wish.request()?;
        if !self.wait {
            let client = Client::connect(context).await?;
            let lease = create(&client, request).await?;
            let outcome = granted(&lease);
            show_one(context, lease)?;
            outcome?;
            return Ok(Exit::Done);
        }
        let mut signals = Signals::listen()?;
        match Acquire::new(context)
            .within(context.timeout)
            .run(request, &mut signals)
            .await?
        {
            Acquired::Granted(lease) => {
                show_one(context, *lease)?;
                Ok(Exit::Done)
            }
            Acquired::Stopped(signal) => Ok(Exit::by_signal(signal)),
        }
    }
}
