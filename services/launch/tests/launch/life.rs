//! What a process says, and what it is given.

use std::fs;
use std::time::Duration;

use fleetgate_launch::{ExitStatus, LaunchError, RunnerEvent};
use fleetgate_runner::Udid;
use tokio::time::timeout;

use crate::support::{NOBODY, Place, device, exited, listening, lives, soon, story, until};

#[tokio::test]
async fn a_runner_says_its_port_and_then_how_it_ended() {
    let place = Place::new();
    let spec = place.script(
        "echo 'ARGENT_RUNNER_STARTING requestedPort=0'
         echo 'Runner[7:9] ARGENT_RUNNER_LISTENING port=8100' >&2
         exit 65",
    );
    let mut running = place.open().start(&device(), &spec).await.unwrap();
    let ended = exited(65);
    assert_eq!(story(&mut running).await, [listening(8100), ended.clone()]);
    assert_eq!(soon(running.next()).await, ended);
    assert!(!soon(running.stop()).await.killed);
}

#[tokio::test]
async fn a_process_that_is_killed_says_by_what() {
    let place = Place::new();
    let spec = place.script("kill -SEGV $$");
    let mut running = place.open().start(&device(), &spec).await.unwrap();
    assert_eq!(
        story(&mut running).await,
        [RunnerEvent::Exited {
            status: ExitStatus::Signal(11)
        }]
    );
}

#[tokio::test]
async fn half_a_port_is_none_until_its_line_is_complete() {
    let place = Place::new();
    let spec = place.script(
        "printf 'ARGENT_RUNNER_LISTENING port=81'
         until [ -e $HERE/go ]; do sleep 0.01; done
         printf '00\\n'; exec sleep 600",
    );
    let launcher = place.open();
    let mut running = launcher.start(&device(), &spec).await.unwrap();
    let log = launcher.log_path(&device());
    until(|| fs::read_to_string(&log).unwrap().ends_with("81")).await;
    timeout(Duration::from_millis(300), running.next())
        .await
        .unwrap_err();
    fs::write(place.file("go"), "").unwrap();
    assert_eq!(soon(running.next()).await, listening(8100));
}

#[tokio::test]
async fn whatever_else_is_in_a_log_only_whole_lines_with_real_ports_count() {
    let place = Place::new();
    let spec = place.script(
        "printf 'ARGENT_RUNNER_LISTENING port=0\\n'
         printf 'ARGENT_RUNNER_LISTENING port=65536\\n'
         printf 'ARGENT_RUNNER_LISTENING port=eighty\\n'
         printf '\\377\\376\\000 ARGENT_RUNNER_LISTENING port=8101\\r\\n'
         head -c 3000000 /dev/zero | tr '\\0' x
         printf ' ARGENT_RUNNER_LISTENING port=8102\\n'
         printf 'ARGENT_RUNNER_LISTENER_FAILED error=Address \\033[1min use\\r\\n'
         printf 'ARGENT_RUNNER_LISTENING port=8103'",
    );
    let mut running = place.open().start(&device(), &spec).await.unwrap();
    let failed = RunnerEvent::ListenerFailed {
        error: "Address \u{fffd}[1min use".to_owned(),
    };
    assert_eq!(
        story(&mut running).await,
        [listening(8101), listening(8102), failed, exited(0)]
    );
}

#[tokio::test]
async fn a_runner_that_listens_anew_says_its_new_port() {
    let place = Place::new();
    let spec = place.script(
        "for port in 8100 8200; do
             echo ARGENT_RUNNER_LISTENING port=$port
             until [ -e $HERE/$port ]; do sleep 0.01; done
         done",
    );
    let mut running = place.open().start(&device(), &spec).await.unwrap();
    for port in [8100, 8200] {
        assert_eq!(soon(running.next()).await, listening(port));
        fs::write(place.file(&port.to_string()), "").unwrap();
    }
    assert_eq!(story(&mut running).await, [exited(0)]);
}

#[tokio::test]
async fn nothing_is_lost_when_the_wait_for_it_is_given_up_again_and_again() {
    let place = Place::new();
    let spec = place.script(
        "i=0; while [ $i -lt 500 ]; do i=$((i+1)); echo ARGENT_RUNNER_LISTENING port=$i; done",
    );
    let mut running = place.open().start(&device(), &spec).await.unwrap();
    let mut events = Vec::new();
    soon(async {
        while !matches!(events.last(), Some(RunnerEvent::Exited { .. })) {
            let patience = Duration::from_micros(events.len() as u64 % 7 * 200);
            if let Ok(event) = timeout(patience, running.next()).await {
                events.push(event);
            }
        }
    })
    .await;
    events.pop();
    let expected: Vec<_> = (1..=500).map(listening).collect();
    assert_eq!(events, expected);
}

#[tokio::test]
async fn a_process_has_its_template_filled_and_nothing_to_read() {
    let place = Place::new();
    let mut spec = place.script(
        "cat; [ -e \"$3\" ] && echo there
         printf '%s\\n' \"$1\" \"$2\" \"$3\" \"$EXTRA\" \"$FLEETGATE_EXTRA\" \"$(pwd -P)\" \"${FLEETGATE_LAUNCH_ID:?}\"",
    );
    spec.directory = Some(place.file("work"));
    fs::create_dir(place.file("work")).unwrap();
    spec.env.insert("EXTRA".to_owned(), "for {udid}".to_owned());
    spec.env
        .insert("FLEETGATE_EXTRA".to_owned(), "wanted".to_owned());
    let launcher = place.open();
    let mut running = launcher.start(&device(), &spec).await.unwrap();
    story(&mut running).await;
    let (udid, log) = (device().to_string(), launcher.log_path(&device()));
    let bundle = place.launches().join(format!("results/{udid}.xcresult"));
    let lines = launcher.log_tail(&device());
    let work = place.file("work").canonicalize().unwrap();
    let expected = [
        udid.clone(),
        log.display().to_string(),
        bundle.display().to_string(),
        format!("for {udid}"),
        "wanted".to_owned(),
        work.display().to_string(),
    ];
    assert_eq!(lines[..6], expected);
    assert_eq!(lines[6].len(), 36);
}

#[tokio::test]
async fn the_log_is_the_phones_own_and_the_last_one_is_kept() {
    let place = Place::new();
    let launcher = place.open();
    let other = Udid::from_parts(0x8110, 0x2);
    for (device, word) in [
        (device(), "one"),
        (other.clone(), "two"),
        (device(), "three"),
    ] {
        let spec = place.script(&format!("echo {word}"));
        let mut running = launcher.start(&device, &spec).await.unwrap();
        story(&mut running).await;
        soon(running.stop()).await;
    }
    assert_eq!(launcher.log_tail(&device()), ["three"]);
    assert_eq!(launcher.log_tail(&other), ["two"]);
    let former = launcher.log_path(&device()).with_extension("log.1");
    assert_eq!(fs::read_to_string(former).unwrap(), "one\n");
}

#[tokio::test]
async fn a_phone_has_one_runner_at_a_time_and_a_record_while_it_has_one() {
    let place = Place::new();
    let launcher = place.open();
    let spec = place.script("exec sleep 600");
    let running = launcher.start(&device(), &spec).await.unwrap();
    assert!(place.record(&device()).exists());
    let refused = launcher.start(&device(), &spec).await.unwrap_err();
    assert!(
        matches!(refused, LaunchError::AlreadyRunning { .. }),
        "{refused:?}"
    );
    assert!(lives(running.pid()));
    soon(running.stop()).await;
    assert!(!place.record(&device()).exists());
    let again = launcher.start(&device(), &spec).await.unwrap();
    soon(again.stop()).await;
}

#[tokio::test]
async fn a_start_that_is_given_up_at_any_moment_leaves_nothing() {
    let place = Place::new();
    let launcher = place.open();
    let spec = place.script("exec sleep 600");
    for step in 0..40 {
        let given_up = Duration::from_micros(step * 250);
        drop(timeout(given_up, launcher.start(&device(), &spec)).await);
        // What was begun is ended behind the caller's back.
        soon(async {
            loop {
                match launcher.start(&device(), &spec).await {
                    Ok(running) => return soon(running.stop()).await,
                    Err(LaunchError::AlreadyRunning { .. }) => tokio::task::yield_now().await,
                    Err(error) => panic!("{error}"),
                }
            }
        })
        .await;
        assert_eq!(place.processes(), NOBODY);
    }
}

#[tokio::test]
async fn a_directory_that_was_removed_is_in_no_later_launchs_way() {
    let place = Place::new();
    let launcher = place.open();
    let spec = place.script("echo ARGENT_RUNNER_LISTENING port=8100; exec sleep 600");
    for removed in ["logs", "records", "results", ""] {
        let mut running = launcher.start(&device(), &spec).await.unwrap();
        assert_eq!(soon(running.next()).await, listening(8100));
        fs::remove_dir_all(place.launches().join(removed)).unwrap();
        soon(running.stop()).await;
    }
    let running = launcher.start(&device(), &spec).await.unwrap();
    assert!(place.record(&device()).exists());
    soon(running.stop()).await;
}
