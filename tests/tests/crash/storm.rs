//! Killed in the middle of everything: many phones, many commands in flight,
//! their intents and fates in shared transactions, and a death at any moment.
//!
//! The seed is printed, and `FLEETGATE_CRASH_SEED` makes the same choices
//! again; what the scheduler does with them is its own. `FLEETGATE_CRASH_ROUNDS`
//! kills more often.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use fleetgate_proto::v1::tail_commands_response::Item;
use fleetgate_proto::v1::{Fate, TailCommandsRequest};
use fleetgate_runner::CommandKind;
use fleetgate_simulator::scenario::DEFAULT_PORT;
use fleetgate_simulator::{Phone, Scenario};
use fleetgate_tests::invariants::Told;
use fleetgate_tests::scene::{Scene, Wreck, send};
use fleetgate_tests::soon;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use tokio::task::JoinSet;
use tonic::transport::Channel;

const PHONES: u32 = 6;
/// How many callers each phone has.
const CALLERS: usize = 4;
const ROUNDS: u32 = 12;

const KINDS: [CommandKind; 6] = [
    CommandKind::Tap,
    CommandKind::Drag,
    CommandKind::LongPress,
    // Fails: nothing has the focus.
    CommandKind::Type,
    CommandKind::Button,
    CommandKind::Viewport,
];

/// One command of the storm.
#[derive(Debug, Clone)]
struct Sent {
    id: String,
    phone: usize,
    kind: CommandKind,
    told: Told,
}

pub(crate) fn variable<T: std::str::FromStr>(name: &str) -> Option<T> {
    let value = std::env::var(name).ok()?;
    Some(
        value
            .parse()
            .unwrap_or_else(|_| panic!("{name} is no number")),
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_at_any_moment_of_a_storm_nothing_is_sent_twice_and_nothing_is_forgotten() {
    let seed = variable("FLEETGATE_CRASH_SEED").unwrap_or_else(|| rand::rng().random());
    let rounds = variable("FLEETGATE_CRASH_ROUNDS").unwrap_or(ROUNDS);
    println!("FLEETGATE_CRASH_SEED={seed}");
    let mut rng = StdRng::seed_from_u64(seed);
    let mut scene = Scene::start(Scenario::fleet(PHONES).scaled(0.02)).await;
    let mut fates = BTreeMap::new();
    for round in 0..rounds {
        let (killed, sent) = rage(scene, round, &mut rng).await;
        let (arrived, restarted) = meddle(&killed, &mut rng);
        scene = killed.restart().await;
        for command in &sent {
            let fate = assert_true(&scene, command).await;
            *fates
                .entry(fate.map(|fate| fate.as_str_name()))
                .or_insert(0) += 1;
            // What had arrived was in the journal of a runner that lived on.
            let known = fate != Some(Fate::Unknown) || !arrived.contains(&command.id);
            assert!(known || restarted == Some(command.phone), "{command:?}");
        }
        once_more(&scene, &sent).await;
    }
    let events = events(&scene).await;
    println!("{rounds} kills, {events} events, fates by what the ledger said then: {fates:?}");
    scene.end().await;
}

/// Lets callers loose on every phone, kills the gateway under them, and gives
/// all that they have sent.
async fn rage(scene: Scene, round: u32, rng: &mut StdRng) -> (Wreck, Vec<Sent>) {
    let mut callers = JoinSet::new();
    for (n, phone) in scene.lab.phones().into_iter().enumerate() {
        for caller in 0..CALLERS {
            let mut rng = StdRng::seed_from_u64(rng.random());
            let name = format!("{round}-{n}-{caller}");
            let (channel, phone) = (scene.channel(), phone.clone());
            callers.spawn(async move { call(channel, phone, n, &name, &mut rng).await });
        }
    }
    let victim = scene.phone(rng.random_range(0..PHONES as usize));
    let effects = victim.report().effects_total + rng.random_range(0..20);
    soon(
        "effects",
        victim.wait_until(|phone| phone.effects_total > effects),
    )
    .await;
    // Not to wait for anything: to be anywhere in what follows.
    tokio::time::sleep(Duration::from_micros(rng.random_range(0..5_000))).await;
    let killed = scene.kill().await;
    let sent = callers.join_all().await.into_iter().flatten().collect();
    (killed, sent)
}

/// Sends one command after the other until nobody answers.
async fn call(channel: Channel, phone: Phone, n: usize, name: &str, rng: &mut StdRng) -> Vec<Sent> {
    let mut sent = Vec::new();
    loop {
        let id = format!("{name}-{}", sent.len());
        let kind = *KINDS.choose(rng).unwrap();
        let told = Told::from(send(channel.clone(), &phone, kind, &id).await);
        let last = matches!(told, Told::Nothing(_));
        let phone = n;
        sent.push(Sent {
            id,
            phone,
            kind,
            told,
        });
        if last {
            return sent;
        }
    }
}

/// The ids that had arrived by now, and the phone whose runner is restarted
/// between the two gateways, if any is.
fn meddle(killed: &Wreck, rng: &mut StdRng) -> (BTreeSet<String>, Option<usize>) {
    let arrived = killed
        .lab
        .phones()
        .iter()
        .flat_map(Phone::arrivals)
        .filter_map(|arrival| arrival.command_id)
        .map(|id| id.as_str().to_owned())
        .collect();
    let restarted = rng
        .random_bool(0.25)
        .then(|| rng.random_range(0..PHONES as usize));
    if let Some(n) = restarted {
        killed.phone(n).restart_runner(DEFAULT_PORT);
    }
    (arrived, restarted)
}

/// Asserts that words and deeds agree, and gives the fate of a command that is
/// on record.
async fn assert_true(scene: &Scene, command: &Sent) -> Option<Fate> {
    let told = vec![command.told.clone()];
    let phone = scene.phone(command.phone);
    let story = scene.story(&phone, command.kind, &command.id, told).await;
    story.on_record.row.map(|row| row.fate())
}

/// Every caller of a mutation that was told nothing asks again, under the same
/// id: then each has been sent once, and no more than once, or nobody knows.
async fn once_more(scene: &Scene, sent: &[Sent]) {
    let untold = sent
        .iter()
        .filter(|command| command.kind.is_mutation() && matches!(command.told, Told::Nothing(_)));
    let calls: Vec<_> = untold
        .map(|command| {
            let phone = scene.phone(command.phone);
            (command, scene.send(&phone, command.kind, &command.id))
        })
        .collect();
    for (command, call) in calls {
        let told = call.told().await;
        assert!(!matches!(told, Told::Nothing(_)), "{told:?}");
        let again = Sent {
            told,
            ..command.clone()
        };
        let fate = assert_true(scene, &again).await;
        assert!(fate.is_some(), "{again:?}");
    }
}

/// Reads all events: none is missing. Gives their number.
async fn events(scene: &Scene) -> u64 {
    let request = TailCommandsRequest {
        until_now: true,
        ..TailCommandsRequest::default()
    };
    let tail = scene.ledger().tail_commands(request).await;
    let mut tail = tail.unwrap().into_inner();
    let mut seq = 0;
    while let Some(message) = tail.message().await.unwrap() {
        match message.item {
            Some(Item::Event(event)) => {
                assert_eq!(event.seq, seq + 1);
                seq = event.seq;
            }
            other => panic!("an event, not {other:?}"),
        }
    }
    seq
}
