//! One command at a time, in order, and one execution per id in flight.

use std::time::Duration;

use fleetgate_simulator::{Fault, Injection, Lab, Scenario};
use serde_json::json;
use tokio::io::AsyncWriteExt;

use crate::wire::{Bench, SETTINGS, pipe, post, read_reply, tap};

#[tokio::test(start_paused = true)]
async fn duplicates_of_an_id_in_flight_share_its_reply() {
    let bench = Bench::new();
    bench.phone.fault(Injection::Slow {
        by: Duration::from_secs(10),
    });
    let mut first = bench.send(&tap("t")).await;
    bench.until(|phone| phone.in_flight == 1).await;
    let mut second = bench.send(&tap(" t ")).await;
    bench.until(|phone| phone.coalesced == 1).await;
    let (first, second) = tokio::join!(read_reply(&mut first), read_reply(&mut second));
    assert_eq!(first, second);
    assert_eq!((bench.effects_of("t"), bench.phone.max_in_flight()), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn commands_run_one_by_one_in_the_order_in_which_they_came() {
    let bench = Bench::new();
    bench.phone.fault(Injection::Slow {
        by: Duration::from_secs(10),
    });
    let mut pipes = Vec::new();
    for n in 0..20 {
        pipes.push(bench.send(&tap(&format!("t{n}"))).await);
        bench.until(|phone| phone.in_flight == n + 1).await;
    }
    bench.until(|phone| phone.effects.len() == 20).await;
    let effects = bench.phone.effects();
    let order: Vec<_> = effects
        .iter()
        .map(|effect| effect.command_id.clone().unwrap().to_string())
        .collect();
    assert_eq!(order, (0..20).map(|n| format!("t{n}")).collect::<Vec<_>>());
}

#[tokio::test(start_paused = true)]
async fn a_command_runs_to_its_end_though_its_client_is_gone() {
    let bench = Bench::new();
    bench.phone.fault(Injection::Slow {
        by: Duration::from_secs(10),
    });
    let pipe = bench.send(&tap("t")).await;
    bench.until(|phone| phone.in_flight == 1).await;
    drop(pipe);
    bench.until(|phone| phone.effects.len() == 1).await;
    assert_eq!(bench.journal("t").await["state"], "completed");
}

#[tokio::test(start_paused = true)]
async fn a_command_runs_to_its_end_though_the_cable_is_pulled() {
    let bench = Bench::new();
    bench.phone.fault(Injection::Slow {
        by: Duration::from_secs(10),
    });
    let _pipe = bench.send(&tap("t")).await;
    bench.until(|phone| phone.in_flight == 1).await;
    bench.phone.detach();
    bench.until(|phone| phone.effects.len() == 1).await;
}

#[tokio::test(start_paused = true)]
async fn status_is_answered_past_a_full_queue() {
    let bench = Bench::new();
    bench.phone.fault(Injection::NeverEnds);
    let _stuck = bench.send(&tap("t1")).await;
    let _queued = bench.send(&tap("t2")).await;
    bench.until(|phone| phone.in_flight == 2).await;
    assert_eq!(bench.state().await, "idle");
    assert_eq!(bench.journal("t2").await["state"], "accepted");
    assert_eq!(bench.phone.report().in_flight, 2, "status does not count");
}

#[tokio::test(start_paused = true)]
async fn fifty_phones_work_at_the_same_time() {
    let lab = Lab::start(Scenario::fleet(50));
    let slow = Fault::from(Injection::Slow {
        by: Duration::from_secs(10),
    });
    let mut pipes = Vec::new();
    for (phone, device) in lab.phones().into_iter().zip(1..) {
        phone.fault(slow.clone());
        let mut pipe = pipe(&lab, device).await;
        pipe.write_all(&post(&tap("t").to_string())).await.unwrap();
        pipes.push(pipe);
    }
    lab.wait_until(|load| load.in_flight == 50).await;
    lab.wait_until(|load| load.in_flight == 0).await;
    assert!(lab.phones().iter().all(|phone| phone.max_in_flight() == 1));
    assert_eq!(lab.load().max_in_flight, 50);
}

#[tokio::test(start_paused = true)]
async fn arrivals_tell_every_request_that_was_read() {
    let bench = Bench::new();
    bench.exchange(tap("t")).await;
    bench.journal("t").await;
    bench
        .exchange(json!({"command": "viewport", "appBundleId": SETTINGS}))
        .await;
    let arrivals: Vec<_> = bench
        .phone
        .arrivals()
        .into_iter()
        .map(|arrival| {
            (
                arrival.kind.as_str(),
                arrival.command_id.map(|id| id.to_string()),
            )
        })
        .collect();
    let t = || Some("t".to_owned());
    assert_eq!(
        arrivals,
        [("tap", t()), ("commandStatus", t()), ("viewport", None)]
    );
}
