//! `devices --watch`: the fleet as it is and as it changes, on a terminal as a
//! table that is drawn again, anywhere else as lines.

use std::time::{Duration, SystemTime};

use anyhow::Context as _;
use fleetgate_proto::v1::{FleetEventType, WatchFleetResponse};
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until};

use super::board::Board;
use super::chosen::Chosen;
use crate::client::Context;
use crate::follow::{Fleet, Follow, Followed, lost};
use crate::labels::Selector;
use crate::output::{Format, line, lines, note, reaches};
use crate::screen::{self, Screen};
use crate::signals::Stop;

/// The shortest time between two pictures.
const FRAME: Duration = Duration::from_millis(100);
/// How often ages are counted up.
const TICK: Duration = Duration::from_secs(1);

/// What to watch.
#[derive(Debug)]
pub(super) struct Watch {
    /// Which phones.
    pub(super) selector: Selector,
    /// Alarms and fates of commands too.
    pub(super) events: bool,
}

impl Watch {
    /// Watches until it is told to stop, nobody reads, or it cannot go on.
    pub(super) async fn run(self, context: &Context) -> anyhow::Result<()> {
        let mut stop = Stop::listen().context("cannot listen to signals")?;
        let types: &[FleetEventType] = if self.events {
            &[]
        } else {
            &[FleetEventType::Device, FleetEventType::Host]
        };
        let follow = Follow::start(context, Fleet::of(types)).await?;
        let chosen = Chosen::new(self.selector);
        if context.format == Format::Table && screen::is_there() {
            let board = Board::new(context.server.to_string(), self.events);
            show(follow, chosen, board, &mut stop).await
        } else {
            tokio::select! {
                told = tell(follow, chosen, context.format) => told,
                () = stop.asked() => Ok(()),
            }
        }
    }
}

/// Prints a line per event.
async fn tell(mut follow: Follow<Fleet>, mut chosen: Chosen, format: Format) -> anyhow::Result<()> {
    loop {
        let message = match follow.next().await? {
            Followed::Said(message) => message,
            Followed::Lost { why, pause } => {
                note(&format!("note: {}", lost(&why, pause)));
                continue;
            }
            Followed::Back => {
                note("note: connected again");
                continue;
            }
        };
        for told in chosen.take(*message) {
            if let Some(gap) = told.gap() {
                note(&format!("note: {gap}"));
            }
            let line = match format {
                Format::Table => told.text(),
                Format::Json => serde_json::to_string(&told)?,
            };
            if !reaches(&line)? {
                return Ok(());
            }
        }
    }
}

/// Draws the board until it is told to stop; what stood on it stays.
async fn show(
    mut follow: Follow<Fleet>,
    mut chosen: Chosen,
    mut board: Board,
    stop: &mut Stop,
) -> anyhow::Result<()> {
    let mut resized = signal(SignalKind::window_change()).context("cannot listen to signals")?;
    let mut ticks = interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut screen = Screen::enter()?;
    let mut last = Instant::now();
    let mut changed = false;
    let ended = loop {
        tokio::select! {
            followed = follow.next() => match followed {
                Ok(followed) => changed |= take(followed, &mut chosen, &mut board),
                Err(rejected) => break Err(rejected),
            },
            () = sleep_until(last + FRAME), if changed => {
                screen.draw(&board.frame(&chosen, screen::size(), SystemTime::now()))?;
                (last, changed) = (Instant::now(), false);
            }
            _ = ticks.tick() => changed = true,
            _ = resized.recv() => changed = true,
            () = stop.asked() => break Ok(()),
        }
    };
    let stood = board.frame(&chosen, screen::size(), SystemTime::now());
    drop(screen);
    line(&lines(stood))?;
    Ok(ended?)
}

/// True if the board looks otherwise now.
fn take(followed: Followed<WatchFleetResponse>, chosen: &mut Chosen, board: &mut Board) -> bool {
    match followed {
        Followed::Said(message) => {
            for told in chosen.take(*message) {
                board.note(&told);
            }
            board.live();
        }
        Followed::Lost { why, pause } => board.lost(&format!("note: {}", lost(&why, pause))),
        Followed::Back => board.live(),
    }
    // A fleet in parts is no sight.
    chosen.is_synced()
}
