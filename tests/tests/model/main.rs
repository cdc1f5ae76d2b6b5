//! The model test: random commands by random callers to many phones, under
//! random trouble, and the promise held against what the phones did.
//!
//! A seed fixes the script: what is sent to each phone, in which order, by what
//! kind of caller, which faults wait, what is done by hand, and what befalls
//! usbmuxd and the gateway. It does not fix the schedule: the gateway is reached
//! over real sockets and runs on threads of its own, so that the same script
//! meets other moments each time. A seed that failed fails again in most cases
//! where the fault is in what was asked for, and in some where it is a race.
//!
//! | variable | meaning |
//! |---|---|
//! | `FLEETGATE_MODEL_SEED` | play this seed's script, and no other |
//! | `FLEETGATE_MODEL_COMMANDS` | at least so many commands instead of 10,000 |

#![expect(clippy::unwrap_used, reason = "a test ends where its set-up fails")]

use std::collections::BTreeMap;
use std::env;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use judge::Judgement;
use script::{Script, Step};
use world::{Sent, World};

mod judge;
mod script;
mod world;

const PHONES: usize = 40;

/// To each phone, by one script.
const COMMANDS_EACH: usize = 63;

/// Played every time, before those that nobody has chosen.
const SEEDS: [u64; 3] = [1, 2, 3];

const COMMANDS: usize = 10_000;

/// Longer than it takes to play a script, or to judge it.
const A_ROUND: Duration = Duration::from_secs(300);

/// How many scripts are played at once: most of the time is spent waiting.
const AT_ONCE: usize = 4;

fn number(variable: &str) -> Option<u64> {
    let text = env::var(variable).ok()?;
    Some(
        text.parse()
            .unwrap_or_else(|error| panic!("{variable}: {error}")),
    )
}

/// The seeds to play: the fixed ones first.
fn seeds() -> Vec<u64> {
    if let Some(seed) = number("FLEETGATE_MODEL_SEED") {
        return vec![seed];
    }
    let commands = number("FLEETGATE_MODEL_COMMANDS");
    let commands = commands.map_or(COMMANDS, |commands| usize::try_from(commands).unwrap());
    let rounds = commands.div_ceil(PHONES * COMMANDS_EACH);
    let fresh = std::iter::repeat_with(rand::random);
    SEEDS.into_iter().chain(fresh).take(rounds).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_happens_nothing_is_done_twice_and_every_fate_is_true() {
    let (mut waiting, mut playing) = (seeds().into_iter(), JoinSet::new());
    let (mut total, mut broken) = (Judgement::default(), Vec::new());
    loop {
        while playing.len() < AT_ONCE
            && let Some(seed) = waiting.next()
        {
            println!("FLEETGATE_MODEL_SEED={seed}");
            playing.spawn(round(seed));
        }
        let Some(played) = playing.join_next().await else {
            break;
        };
        match played.unwrap() {
            Ok(judgement) => total += judgement,
            Err(words) => broken.push(words),
        }
    }
    println!("{total}");
    assert!(broken.is_empty(), "{}", broken.join("\n\n"));
}

/// Plays one script to its end, and judges it.
async fn round(seed: u64) -> Result<Judgement, String> {
    let script = Script::new(seed, PHONES, COMMANDS_EACH);
    let world = World::new(seed, PHONES).await;
    let sent = play(&script, &world);
    let sent = world.in_time(A_ROUND, "the script's end", sent).await;
    let judged = judge::judge(&world, sent);
    let judged = world.in_time(A_ROUND, "the judgement", judged).await;
    world.end().await;
    judged.map_err(|broken| {
        let told: Vec<_> = broken
            .iter()
            .map(|one| {
                format!(
                    "{}\n{}",
                    one.words,
                    episode(&script, one.phone, &one.command)
                )
            })
            .collect();
        format!(
            "FLEETGATE_MODEL_SEED={seed}: {} broken promises:\n\n{}",
            told.len(),
            told.join("\n\n")
        )
    })
}

/// Plays a script, and gives what was sent to each phone.
async fn play(script: &Script, world: &Arc<World>) -> BTreeMap<usize, Vec<Sent>> {
    let seed = world.seed;
    let mut upheavals = JoinSet::new();
    let shaken = Arc::clone(world);
    let upheaving = script.upheavals.clone();
    let stop = CancellationToken::new();
    let stopped = stop.clone();
    upheavals.spawn(async move { shaken.shake(upheaving, stopped).await });
    let mut phones = JoinSet::new();
    for (at, steps) in script.phones.iter().cloned().enumerate() {
        let world = Arc::clone(world);
        phones.spawn(async move { (at, world.play(at, steps).await) });
    }
    let mut sent: BTreeMap<usize, Vec<Sent>> = BTreeMap::new();
    while let Some(done) = phones.join_next().await {
        let (at, all) = done.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        sent.insert(at, all);
    }
    stop.cancel();
    let shaken = upheavals.join_next().await.unwrap();
    shaken.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    world.calm().await;
    sent
}

/// What the script had for a phone around a command: from the last healing to
/// the next.
fn episode(script: &Script, phone: usize, command: &str) -> String {
    let steps = &script.phones[phone];
    let is_it = |step: &Step| matches!(step, Step::Send(sent) if sent.id == command);
    let heals = |step: &&Step| matches!(step, Step::Heal);
    let Some(at) = steps.iter().position(is_it) else {
        return String::new();
    };
    let begin = steps[..at].len()
        - steps[..at]
            .iter()
            .rev()
            .take_while(|step| !heals(step))
            .count();
    let end = at + steps[at..].iter().take_while(|step| !heals(step)).count();
    let steps: Vec<_> = steps[begin..end]
        .iter()
        .map(|step| format!("  {step:?}"))
        .collect();
    format!("the script:\n{}", steps.join("\n"))
}
