//! A rack at its worst for as long as it takes: random plugging, killing and
//! restarting under load.
//!
//! ```sh
//! cargo build --release
//! cargo run --release -p fleetgate-tests --example soak -- --minutes 30
//! ```
//!
//! Time goes in rounds: trouble under load, then calm. In the calm every phone
//! that should be ready must become so; every command of the round is held
//! against what its phone felt ([`fleetgate_tests::invariants`]); and what the
//! gateway's process holds (memory, descriptors, threads) and how many runner
//! processes there are must be back at what they were. In the first rounds the
//! gateway is killed too; then one gateway lives through all the others, so that
//! a leak has time to show.
//!
//! The seed is printed; `--seed` makes the same choices again. The first thing
//! that does not hold ends it with a panic.

mod load;
mod runners;
mod trouble;

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use fleetgate_proto::v1::DeviceState;
use fleetgate_simulator::Lab;
use fleetgate_tests::mirror::{Mirror, Seen};
use fleetgate_tests::process::Process;
use fleetgate_tests::scene::Scene;
use fleetgate_tests::{connect, pause, plain_lab};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::json;
use tokio::time::Instant;

use load::Load;
use runners::Runners;

/// How long a calm fleet may take to be ready.
const RECOVERY: Duration = Duration::from_secs(90);
/// What memory may grow by, between the first calm and the last.
const GROWTH: u64 = 24 * 1024 * 1024;

#[derive(Debug)]
struct Options {
    lasting: Duration,
    round: Duration,
    phones: u32,
    kills: u32,
    seed: u64,
    json: Option<PathBuf>,
}

/// What the gateway's process holds in a calm.
#[derive(Debug, Clone, Copy)]
struct Held {
    resident: u64,
    descriptors: usize,
    threads: usize,
}

fn main() {
    let options = Options::read();
    println!("--seed {}", options.seed);
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(soak(&options));
}

impl Options {
    fn read() -> Self {
        let mut options = Self {
            lasting: Duration::from_mins(30),
            round: Duration::from_secs(60),
            phones: 16,
            kills: 3,
            seed: rand::rng().random(),
            json: None,
        };
        let mut args = std::env::args().skip(1);
        while let Some(name) = args.next() {
            let value = args
                .next()
                .unwrap_or_else(|| panic!("{name} needs a value"));
            let number = || -> u64 {
                let number = value.parse();
                number.unwrap_or_else(|_| panic!("{name}: {value} is no number"))
            };
            let small = || u32::try_from(number()).expect("a small number");
            match name.as_str() {
                "--minutes" => options.lasting = Duration::from_mins(number()),
                "--round-seconds" => options.round = Duration::from_secs(number()),
                "--phones" => options.phones = small(),
                "--kills" => options.kills = small(),
                "--seed" => options.seed = number(),
                "--json" => options.json = Some(value.into()),
                other => panic!(
                    "{other}: expected --minutes N, --round-seconds N, --phones N, --kills N, \
                     --seed N or --json FILE"
                ),
            }
        }
        options
    }
}

async fn soak(options: &Options) {
    let begun = Instant::now();
    let mut rng = StdRng::seed_from_u64(options.seed);
    let (mut scene, runners) = start(options).await;
    let mut first = None;
    let mut rounds = Vec::new();
    let mut round = 0;
    while begun.elapsed() < options.lasting {
        round += 1;
        let load = Load::start(&scene, round);
        trouble::make(&scene, &runners, &mut rng, options.round).await;
        let killed = round <= options.kills;
        let sent = if killed {
            let wreck = scene.kill().await;
            let sent = load.end().await;
            scene = wreck.restart().await;
            sent
        } else {
            load.end().await
        };
        let recovery = calm(&scene, &runners).await;
        let (commands, fates) = load::judge(&scene, sent).await;
        let held = Held::by(&scene);
        runners.one_group_each().await;
        println!(
            "round {round:>3}: {commands} commands {fates:?}, ready again in {recovery:.1?}, \
             {} MiB, {} descriptors, {} threads{}",
            held.resident >> 20,
            held.descriptors,
            held.threads,
            if killed { ", gateway killed" } else { "" },
        );
        rounds.push(json!({
            "round": round, "commands": commands, "fates": fates, "killed": killed,
            "recovery_seconds": recovery.as_secs_f64(), "resident_bytes": held.resident,
            "descriptors": held.descriptors, "threads": held.threads,
        }));
        if killed {
            first = None;
        } else {
            first.get_or_insert(held).bounds(held);
        }
    }
    scene.end().await;
    runners.none_left().await;
    println!("{round} rounds in {:.0?}", begun.elapsed());
    if let Some(path) = &options.json {
        let text = serde_json::to_string_pretty(&rounds).expect("JSON");
        std::fs::write(path, text).expect("a file for the figures");
    }
}

/// Half of the phones have their runners launched by the gateway, half have one
/// that somebody else sees to.
async fn start(options: &Options) -> (Scene, Runners) {
    let mut scenario = plain_lab(options.phones, 1.0);
    for phone in scenario.phones.iter_mut().skip(1).step_by(2) {
        phone.runner = false;
    }
    let launched = scenario.phones.iter().filter(|phone| !phone.runner);
    let launched = launched.map(|phone| phone.udid.clone()).collect();
    let lab = Lab::start(scenario);
    let free = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let control = lab.serve_control(free).await.expect("a control API");
    let runners = Runners::new(launched, control, options.seed);
    let scene = Scene::before(lab, &runners.config()).await;
    calm(&scene, &runners).await;
    (scene, runners)
}

/// Mends everything, and waits until every phone is ready.
async fn calm(scene: &Scene, runners: &Runners) -> Duration {
    let begun = Instant::now();
    let phones = scene.lab.phones();
    trouble::end(scene, runners);
    let mirror = Mirror::follow(connect(&scene.server.url).await).await;
    let ready = |seen: &Seen| seen.count(DeviceState::Ready) == phones.len();
    while !mirror.look(ready) {
        if begun.elapsed() > RECOVERY {
            let seen = mirror.seen();
            let late = seen.devices.values();
            let late = late.filter(|device| device.state() != DeviceState::Ready || device.stale);
            panic!(
                "not ready after {RECOVERY:?}: {:#?}",
                late.collect::<Vec<_>>()
            );
        }
        pause().await;
    }
    begun.elapsed()
}

impl Held {
    fn by(scene: &Scene) -> Self {
        let process = Process::new(scene.pid());
        Self {
            resident: process.resident(),
            descriptors: process.descriptors(),
            threads: process.threads(),
        }
    }

    /// What a later calm may hold, after this one.
    fn bounds(self, later: Self) {
        assert!(
            later.resident < self.resident + GROWTH,
            "{self:?}, then {later:?}"
        );
        // Connections of a phone's pipes and the ledger's files come and go.
        assert!(
            later.descriptors <= self.descriptors + 16,
            "{self:?}, then {later:?}"
        );
        assert!(
            later.threads <= self.threads + 8,
            "{self:?}, then {later:?}"
        );
    }
}
