//! What starts, what does not, and that there is nothing between the two.

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use super::*;
use crate::queue::Caller;
use crate::testing::{job, screenshot, tap};

fn queue(commands: impl IntoIterator<Item = fleetgate_runner::Command<Point>>) -> Queue<()> {
    let mut queue = Queue::new(8);
    for (n, command) in commands.into_iter().enumerate() {
        let turn = Turn::from(job(&format!("c-{n}"), command));
        let caller = Caller {
            deadline: None,
            to: (),
        };
        queue.push(turn, caller).unwrap();
    }
    queue
}

fn start(traffic: &Traffic, queue: &mut Queue<()>) -> Option<Flight> {
    let started = traffic.start(queue, Gate::Open, |()| false);
    started.map(|(_, flight)| flight)
}

#[test]
fn what_starts_is_in_flight_and_no_longer_waits_from_the_same_moment_on() {
    let traffic = Traffic::default();
    let mut queue = queue([tap(), screenshot()]);
    traffic.set_queued(queue.len());
    let flight = start(&traffic, &mut queue).unwrap();
    let load = traffic.load(Condition::Ready);
    assert_eq!((load.queued, load.in_flight.is_some()), (1, true));
    queue.finish().for_each(drop);
    drop(flight);
    assert_eq!(traffic.load(Condition::Ready).in_flight, None);
}

#[test]
fn nothing_starts_until_as_many_pauses_have_ended_as_have_begun() {
    let traffic = Traffic::default();
    let mut queue = queue([screenshot()]);
    let pauses = [traffic.pause(), traffic.clone().pause(), traffic.pause()];
    for pause in pauses {
        assert!(traffic.is_paused());
        assert!(start(&traffic, &mut queue).is_none());
        drop(pause);
    }
    assert!(!traffic.is_paused());
    assert!(start(&traffic, &mut queue).is_some());
}

/// Whoever pauses while something is being started sees it in flight.
#[test]
fn a_pause_comes_before_a_start_or_after_it_and_never_between() {
    let traffic = Traffic::default();
    let mut queue = queue([screenshot()]);
    let (say, heard) = mpsc::channel();
    thread::scope(|scope| {
        let asked = |(): &()| {
            let (traffic, say) = (traffic.clone(), say.clone());
            scope.spawn(move || {
                let _pause = traffic.pause();
                say.send(traffic.load(Condition::Ready).in_flight.is_some())
            });
            // In the midst of a start nobody gets this far.
            let between = heard.recv_timeout(Duration::from_millis(50));
            assert!(between.is_err(), "paused in the midst of a start");
            false
        };
        let started = traffic.start(&mut queue, Gate::Open, asked);
        assert!(started.is_some());
        assert!(heard.recv().unwrap(), "nothing seemed to be in flight");
    });
}
