//! What it costs to learn of many phones, one by one and all at once: the
//! processor time of listening, merging and telling whoever watches.
//!
//! ```sh
//! cargo run --release -p fleetgate-device --example announce -- 1000
//! ```
//!
//! The daemon is in the same process and its share is included; processor time
//! is read from `/proc`, so that this runs on Linux only.

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use fleetgate_device::{BoxStream, Dialer, HostConfig, Hosts, UsbmuxdConfig};
use fleetgate_usbmux::{ConnectionType, Decoder, Event, MuxDeviceId, Phone, Reply};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

type Failure = Box<dyn Error + Send + Sync>;

/// As many as a fleet has keepers and watchers that look at each view.
const WATCHERS: usize = 50;

fn main() -> Result<(), Failure> {
    let phones = std::env::args()
        .nth(1)
        .map_or(Ok(1000), |text| text.parse())?;
    for (how, pause) in [
        ("all at once", None),
        ("one by one, as fast as they go", Some(Duration::ZERO)),
        (
            "one by one, a millisecond apart",
            Some(Duration::from_millis(1)),
        ),
        (
            "one by one, five milliseconds apart",
            Some(Duration::from_millis(5)),
        ),
    ] {
        // One thread, so that its processor time is all there is.
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?
            .block_on(measure(how, phones, pause))?;
    }
    Ok(())
}

async fn measure(how: &str, phones: u32, pause: Option<Duration>) -> Result<(), Failure> {
    let (queue, mut dialled) = mpsc::channel::<DuplexStream>(1);
    let dialer = Dialer::from_fn("in process", move || {
        let queue = queue.clone();
        Box::pin(async move {
            let (ours, theirs) = duplex(64 * 1024);
            queue.send(theirs).await.map_err(std::io::Error::other)?;
            Ok(Box::new(ours) as BoxStream)
        })
    });
    let (hosts, task) = Hosts::spawn(vec![HostConfig {
        name: "one".into(),
        dialer,
        usbmuxd: UsbmuxdConfig::default(),
    }]);
    let mut stream = dialled.recv().await.ok_or("nobody dials")?;
    let tag = request(&mut stream).await?;
    stream
        .write_all(&Reply::Result(0.into()).encode(tag)?)
        .await?;

    let views = Arc::new(AtomicUsize::new(0));
    let mut watchers = JoinSet::new();
    for number in 0..WATCHERS {
        let (mut view, views) = (hosts.view(), Arc::clone(&views));
        watchers.spawn(async move {
            while view.changed().await.is_ok() {
                // Each looks at every phone, and one counts.
                let stale = view
                    .borrow_and_update()
                    .devices
                    .values()
                    .filter(|at| at.stale)
                    .count();
                views.fetch_add(usize::from(number == 0) + stale, Ordering::Relaxed);
            }
        });
    }
    sleep(Duration::from_millis(100)).await;

    let events: Vec<_> = (1..=phones).map(attached).collect::<Result<_, _>>()?;
    let (began, spent, seen) = (
        Instant::now(),
        processor_time()?,
        views.load(Ordering::Relaxed),
    );
    match pause {
        None => stream.write_all(&events.concat()).await?,
        Some(pause) => {
            for event in &events {
                stream.write_all(event).await?;
                if pause.is_zero() {
                    tokio::task::yield_now().await;
                } else {
                    sleep(pause).await;
                }
            }
        }
    }
    let mut view = hosts.view();
    view.wait_for(|view| view.devices.len() == events.len())
        .await?;
    let (took, spent) = (began.elapsed(), processor_time()?.saturating_sub(spent));
    let seen = views.load(Ordering::Relaxed) - seen;
    println!("{phones} phones {how}: {took:.1?}, {spent:.1?} of processor time, {seen} views");
    task.shutdown().await;
    Ok(())
}

async fn request(stream: &mut DuplexStream) -> Result<u32, Failure> {
    let mut decoder = Decoder::new();
    loop {
        if let Some(packet) = decoder.next_packet()? {
            return Ok(packet.header.tag);
        }
        if stream.read_buf(decoder.input()).await? == 0 {
            return Err("hung up".into());
        }
    }
}

fn attached(number: u32) -> Result<Vec<u8>, Failure> {
    let phone = Phone {
        device: MuxDeviceId(number),
        connection: ConnectionType::Usb,
        serial: format!("00008110-{number:016X}"),
        product: Some(4776),
        location: Some(17_891_328),
        speed: Some(480_000_000),
    };
    Ok(Event::Attached(phone).encode()?.to_vec())
}

/// What this thread has had of a processor.
fn processor_time() -> Result<Duration, Failure> {
    let text = std::fs::read_to_string("/proc/self/schedstat")?;
    let nanos = text.split_whitespace().next().ok_or("no schedstat")?;
    Ok(Duration::from_nanos(nanos.parse()?))
}
