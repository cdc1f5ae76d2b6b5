//! What many runners cost: `cargo run --release -p fleetgate-launch --example
//! launch_cost [RUNNERS]` (Linux; 1,000 if not said).
//!
//! A gateway of its own process launches so many processes that say a port and
//! then are silent. Told are the time until all have said it, what following
//! their logs costs while nothing happens, and, once that gateway is killed,
//! what the next one needs to find and end them all.

use std::error::Error;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use fleetgate_launch::{LaunchSpec, Launcher, RunnerEvent, Running, Swept};
use fleetgate_runner::Udid;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

/// How long an idle gateway is watched.
const WATCH: Duration = Duration::from_secs(20);
/// So many ticks a second is processor time counted in.
const TICKS: f64 = 100.0;

#[tokio::main(worker_threads = 2)]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    match arguments.as_slice() {
        [own, directory, runners] if own == "own" => {
            own_runners(directory.into(), runners.parse()?).await
        }
        [] => measure(1000).await,
        [runners] => measure(runners.parse()?).await,
        _ => Err("usage: launch_cost [RUNNERS]".into()),
    }
}

/// The gateway that is killed.
async fn own_runners(directory: PathBuf, runners: u32) -> Result<(), Box<dyn Error>> {
    let launcher = Launcher::open(directory)?;
    let script = "echo ARGENT_RUNNER_LISTENING port=8100; exec sleep 3600";
    let spec = LaunchSpec::new(["/bin/sh", "-c", script]);
    let mut starting = JoinSet::new();
    for unit in 0..runners {
        let (launcher, spec) = (launcher.clone(), spec.clone());
        starting.spawn(async move {
            let mut running = launcher.start(&device(unit), &spec).await?;
            let event = running.next().await;
            assert!(matches!(event, RunnerEvent::Listening { .. }), "{event:?}");
            Ok::<Running, fleetgate_launch::LaunchError>(running)
        });
    }
    let mut following = JoinSet::new();
    while let Some(started) = starting.join_next().await {
        let mut running = started??;
        following.spawn(async move { running.next().await });
    }
    println!("ready");
    std::io::stdout().flush()?;
    let ended = following.join_next().await;
    Err(format!("no runner should have ended: {ended:?}").into())
}

async fn measure(runners: u32) -> Result<(), Box<dyn Error>> {
    let place = tempfile::tempdir()?;
    let directory = place.path().join("runners");
    let begun = Instant::now();
    let mut owner = Command::new(std::env::current_exe()?)
        .arg("own")
        .arg(&directory)
        .arg(runners.to_string())
        .stdout(Stdio::piped())
        .spawn()?;
    let stdout = owner.stdout.take().ok_or("no standard output")?;
    let ready = BufReader::new(stdout).lines().map_while(Result::ok);
    if !ready.into_iter().any(|line| line == "ready") {
        return Err("the gateway did not begin".into());
    }
    println!(
        "{runners} runners: all listening after {:.2} s, for {:.2} s of processor time",
        begun.elapsed().as_secs_f64(),
        processor(owner.id())?
    );

    // Until the pauses have grown to their longest.
    sleep(Duration::from_secs(5)).await;
    let before = processor(owner.id())?;
    sleep(WATCH).await;
    let share = (processor(owner.id())? - before) / WATCH.as_secs_f64();
    println!(
        "idle: {:.3} % of a core, {} KiB resident",
        share * 100.0,
        resident(owner.id())?
    );

    owner.kill()?;
    owner.wait()?;
    let (records, kept) = (directory.join("records"), place.path().join("kept"));
    copy(&records, &kept)?;
    let ended = sweep(&directory, "all alive").await?;
    if ended != runners {
        return Err(format!("{ended} of {runners} were ended").into());
    }
    copy(&kept, &records)?;
    sweep(&directory, "none alive").await?;
    Ok(())
}

/// Sweeps for all, and says what it took; how many were ended.
async fn sweep(directory: &Path, what: &str) -> Result<u32, Box<dyn Error>> {
    let me = std::process::id();
    let launcher = Launcher::open(directory.to_owned())?;
    let (begun, before) = (Instant::now(), processor(me)?);
    let all = launcher.sweep_all().await?;
    let took = begun.elapsed();
    let ended = all.devices.values();
    let ended = ended
        .filter(|swept| matches!(swept, Swept::Ended { .. }))
        .count();
    println!(
        "sweep_all, {} records, {what}: {:.0} ms, {:.0} ms of processor time, {ended} ended",
        all.devices.len(),
        took.as_secs_f64() * 1000.0,
        (processor(me)? - before) * 1000.0,
    );
    Ok(u32::try_from(ended)?)
}

fn device(unit: u32) -> Udid {
    Udid::from_parts(0x8110, unit.into())
}

fn copy(from: &Path, to: &Path) -> Result<(), Box<dyn Error>> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        fs::copy(entry.path(), to.join(entry.file_name()))?;
    }
    Ok(())
}

/// The processor time that a process has had, in seconds.
fn processor(pid: u32) -> Result<f64, Box<dyn Error>> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let fields = stat.rsplit(')').next().unwrap_or_default();
    let fields: Vec<_> = fields.split_ascii_whitespace().collect();
    let ticks = |at: usize| fields.get(at).and_then(|field| field.parse::<u32>().ok());
    let total = ticks(11).zip(ticks(12)).ok_or("no processor time")?;
    Ok(f64::from(total.0 + total.1) / TICKS)
}

/// The memory that a process has in use, in KiB.
fn resident(pid: u32) -> Result<u64, Box<dyn Error>> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.and_then(|line| line.split_ascii_whitespace().next());
    Ok(number.ok_or("no resident memory")?.parse()?)
}
