//! What a fleet costs one gateway, and how it comes back:
//!
//! ```sh
//! cargo build --release && cargo run --release -p fleetgate-tests --example fleet_scale
//! ```
//!
//! The gateway is the real binary in a process of its own; the lab is in this
//! one, so that the gateway's process is all that is measured. Steps:
//!
//! - an empty gateway: the base that every phone comes on top of
//! - start-up: from the process's start until every phone is ready
//! - idle: processor time and memory, over more than one round of probes
//! - burst: one tap on every phone at once, then the same before watchers who
//!   have to be told of each
//! - usbmuxd restarts under load, its old numbers given to other phones
//!
//! Whatever is claimed of the phones is read from the lab: how often each was
//! tapped. `--json FILE` keeps the figures, and the first line that does not
//! hold ends it with an error.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use fleetgate_proto::v1::DeviceState;
use fleetgate_runner::CommandKind;
use fleetgate_simulator::{Ids, Lab, Phone, Scenario};
use fleetgate_tests::mirror::Mirror;
use fleetgate_tests::place::{Place, Server};
use fleetgate_tests::process::Process;
use fleetgate_tests::scene::send;
use fleetgate_tests::{connect, plain_lab};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};
use tonic::transport::Channel;

/// What is asked for on the command line.
#[derive(Debug)]
struct Options {
    phones: u32,
    watchers: usize,
    idle: Duration,
    json: Option<PathBuf>,
}

/// The figures, in the order of their measurement.
#[derive(Debug, Default)]
struct Figures(Vec<(&'static str, Value, &'static str)>);

impl Figures {
    fn note(&mut self, name: &'static str, value: impl Into<Value>, unit: &'static str) {
        let value = value.into();
        println!("{name:<44} {:>12} {unit}", value.to_string());
        self.0.push((name, value, unit));
    }

    fn json(self) -> Value {
        let rows = self.0.into_iter();
        let rows =
            rows.map(|(name, value, unit)| json!({"name": name, "value": value, "unit": unit}));
        rows.collect()
    }
}

fn main() {
    let options = Options::read();
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let figures = runtime.block_on(measure(&options));
    if let Some(path) = &options.json {
        let text = serde_json::to_string_pretty(&figures.json()).expect("JSON");
        std::fs::write(path, text).expect("a file for the figures");
    }
}

impl Options {
    fn read() -> Self {
        let mut options = Self {
            phones: 1000,
            watchers: 50,
            idle: Duration::from_secs(40),
            json: None,
        };
        let mut args = std::env::args().skip(1);
        while let Some(name) = args.next() {
            let value = args
                .next()
                .unwrap_or_else(|| panic!("{name} needs a value"));
            let number = || {
                value
                    .parse()
                    .unwrap_or_else(|_| panic!("{name}: {value} is no number"))
            };
            match name.as_str() {
                "--phones" => options.phones = number(),
                "--watchers" => options.watchers = number() as usize,
                "--idle-seconds" => options.idle = Duration::from_secs(number().into()),
                "--json" => options.json = Some(value.into()),
                other => panic!(
                    "{other}: expected --phones N, --watchers N, --idle-seconds N or --json FILE"
                ),
            }
        }
        options
    }
}

async fn measure(options: &Options) -> Figures {
    let mut figures = Figures::default();
    let phones = options.phones as usize;
    figures.note("phones", options.phones, "");

    let base = base(&mut figures).await;

    let place = Place::new();
    let lab = lab(options.phones, &place).await;
    let begun = Instant::now();
    let server = serve(&place).await;
    let gateway = process(&server);
    let channel = connect(&server.url).await;
    let mut mirror = Mirror::follow(channel.clone()).await;
    all_ready(&mut mirror, phones).await;
    figures.note("start to all ready", seconds(begun.elapsed()), "s");
    figures.note(
        "start to all ready, processor",
        seconds(gateway.processor_time()),
        "s",
    );

    idle(&mut figures, gateway, options, base).await;
    let plain = burst(&mut figures, "burst", gateway, &lab, &server.url).await;
    let watched = watched_burst(&mut figures, options, gateway, &lab, &server.url).await;
    figures.note(
        "burst, processor with watchers / without",
        round(watched / plain),
        "",
    );
    restart(&mut figures, &mut mirror, &lab, &server.url).await;

    mirror.look(|seen| assert_eq!(seen.gaps, 0, "the mirror kept up"));
    drop((mirror, channel));
    assert_eq!(server.end().await, Some(0), "the gateway ends in peace");
    lab.shutdown().await;
    figures
}

async fn lab(phones: u32, place: &Place) -> Lab {
    let lab = Lab::start(if phones == 0 {
        Scenario::fleet(0)
    } else {
        plain_lab(phones, 1.0)
    });
    lab.serve_unix(place.usbmuxd())
        .await
        .expect("a unix socket");
    lab
}

async fn serve(place: &Place) -> Server {
    Server::start(&mut place.serve_on(&place.path("ledger.db"), "[health]")).await
}

fn process(server: &Server) -> Process {
    Process::new(server.running.child.id().expect("a process that runs"))
}

async fn all_ready(mirror: &mut Mirror, phones: usize) {
    let ready = |seen: &fleetgate_tests::mirror::Seen| seen.count(DeviceState::Ready) == phones;
    mirror.until("every phone ready", ready).await;
}

/// The memory of a gateway that has no phone.
async fn base(figures: &mut Figures) -> u64 {
    let place = Place::new();
    let lab = lab(0, &place).await;
    let server = serve(&place).await;
    let channel = connect(&server.url).await;
    let mut mirror = Mirror::follow(channel).await;
    mirror
        .until("the host", |seen| {
            seen.hosts.values().any(|host| host.connected)
        })
        .await;
    let resident = process(&server).resident();
    figures.note("empty gateway, memory", resident / 1024, "KiB");
    drop(mirror);
    server.end().await;
    lab.shutdown().await;
    resident
}

async fn idle(figures: &mut Figures, gateway: Process, options: &Options, base: u64) {
    let (begun, before) = (Instant::now(), gateway.processor_time());
    sleep(options.idle).await;
    let spent = gateway.processor_time().saturating_sub(before);
    let share = 100.0 * spent.as_secs_f64() / begun.elapsed().as_secs_f64();
    figures.note("idle, processor", round(share), "% of one core");
    let memory = gateway.resident();
    figures.note("idle, memory", memory / 1024, "KiB");
    let own = kibibytes(memory.saturating_sub(base));
    figures.note(
        "idle, memory per phone above the base",
        round(own / f64::from(options.phones)),
        "KiB",
    );
    figures.note("idle, descriptors", gateway.descriptors(), "");
    figures.note("threads", gateway.threads(), "");
}

/// One tap on every phone at once; gives the processor time that it took.
async fn burst(
    figures: &mut Figures,
    name: &'static str,
    gateway: Process,
    lab: &Lab,
    url: &str,
) -> f64 {
    let channel = connect(url).await;
    let before = (gateway.processor_time(), taps(&lab.phones()));
    let begun = Instant::now();
    let mut calls = JoinSet::new();
    for (n, phone) in lab.phones().into_iter().enumerate() {
        calls.spawn(send(
            channel.clone(),
            &phone,
            CommandKind::Tap,
            &format!("{name}-{n}"),
        ));
    }
    let count = u32::try_from(calls.len()).expect("so many calls");
    for outcome in calls.join_all().await {
        outcome.expect("every tap succeeds");
    }
    let took = begun.elapsed();
    let spent = gateway
        .processor_time()
        .saturating_sub(before.0)
        .as_secs_f64();
    let after = taps(&lab.phones());
    let once = after
        .iter()
        .zip(&before.1)
        .all(|(after, before)| after - before == 1);
    assert!(once, "every phone felt one tap");
    let (wall, cost): (&str, &str) = match name {
        "burst" => (
            "burst, one tap on every phone",
            "burst, processor per command",
        ),
        _ => (
            "burst before watchers",
            "burst before watchers, processor per command",
        ),
    };
    figures.note(wall, seconds(took), "s");
    figures.note(cost, round(1e6 * spent / f64::from(count)), "us");
    spent
}

async fn watched_burst(
    figures: &mut Figures,
    options: &Options,
    gateway: Process,
    lab: &Lab,
    url: &str,
) -> f64 {
    let phones = options.phones as usize;
    let mut watchers = Vec::new();
    for _ in 0..options.watchers {
        let mut watcher = Mirror::follow(connect(url).await).await;
        watcher.until("a snapshot", |seen| seen.synced == 1).await;
        watchers.push(watcher);
    }
    figures.note("watchers", options.watchers, "");
    let memory = gateway.resident();
    let spent = burst(figures, "watched", gateway, lab, url).await;
    let begun = Instant::now();
    for watcher in &mut watchers {
        let seen = watcher
            .until("every fate", |seen| seen.commands.len() >= phones)
            .await;
        let ids: BTreeSet<_> = seen.commands.iter().map(|fate| &fate.command_id).collect();
        assert_eq!(
            (seen.gaps, ids.len(), seen.commands.len()),
            (0, phones, phones)
        );
    }
    figures.note(
        "last watcher told after the last answer",
        seconds(begun.elapsed()),
        "s",
    );
    let grown = gateway.peak().saturating_sub(memory);
    figures.note(
        "burst before watchers, memory at its peak above",
        grown / 1024,
        "KiB",
    );
    spent
}

/// usbmuxd is ended under load and started again with its old numbers given to
/// other phones.
async fn restart(figures: &mut Figures, mirror: &mut Mirror, lab: &Lab, url: &str) {
    let phones = lab.phones();
    let before = taps(&phones);
    let mut load = JoinSet::new();
    for (n, phone) in phones.iter().enumerate().step_by(5) {
        load.spawn(tap_on(connect_lazily(url), phone.clone(), n));
    }
    sleep(Duration::from_secs(1)).await;
    lab.stop_usbmuxd();
    mirror
        .until("all stale", |seen| seen.count(DeviceState::Ready) == 0)
        .await;
    sleep(Duration::from_secs(1)).await;
    let begun = Instant::now();
    lab.start_usbmuxd(Ids::Reused);
    all_ready(mirror, phones.len()).await;
    figures.note(
        "usbmuxd back to all ready, under load",
        seconds(begun.elapsed()),
        "s",
    );
    let (mut sent, mut failed) = (vec![0_u64; phones.len()], 0_u64);
    for (n, tries, failures) in load.join_all().await {
        sent[n] = tries;
        failed += failures;
    }
    let after = taps(&phones);
    for (n, phone) in phones.iter().enumerate() {
        let felt = after[n] - before[n];
        assert!(
            felt <= sent[n],
            "{}: {felt} taps of {} sent",
            phone.udid(),
            sent[n]
        );
    }
    figures.note("taps across the restart", sent.iter().sum::<u64>(), "");
    figures.note("of them without success", failed, "");
}

/// Taps one after the other for a while; gives how many, and how many failed.
async fn tap_on(channel: Channel, phone: Phone, n: usize) -> (usize, u64, u64) {
    let until = Instant::now() + Duration::from_secs(4);
    let (mut sent, mut failed) = (0, 0);
    while Instant::now() < until {
        let id = format!("load-{n}-{sent}");
        let told = send(channel.clone(), &phone, CommandKind::Tap, &id).await;
        sent += 1;
        failed += u64::from(told.is_err());
        sleep(Duration::from_millis(100)).await;
    }
    (n, sent, failed)
}

fn connect_lazily(url: &str) -> Channel {
    Channel::from_shared(url.to_owned())
        .expect("an address")
        .connect_lazy()
}

fn taps(phones: &[Phone]) -> Vec<u64> {
    phones
        .iter()
        .map(|phone| phone.report().effects_total)
        .collect()
}

/// Whole ones: a process is measured by the page.
fn kibibytes(bytes: u64) -> f64 {
    f64::from(u32::try_from(bytes / 1024).expect("less than 4 TiB"))
}

fn seconds(time: Duration) -> f64 {
    round(time.as_secs_f64())
}

fn round(number: f64) -> f64 {
    (number * 1000.0).round() / 1000.0
}
