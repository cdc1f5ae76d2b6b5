//! Whatever is told, at whatever pace: bounded, unbroken, and nothing forgotten.

use proptest::prelude::*;

use super::*;

const STATES: [&str; 4] = ["DETACHED", "ATTACHED", "LAUNCHING", "READY"];

fn phone(number: u64) -> Udid {
    Udid::from_parts(0x8110, number)
}

fn transition(device: Udid, from: usize, to: usize) -> NewTransition {
    NewTransition {
        device,
        from: STATES[from].to_owned(),
        to: STATES[to].to_owned(),
        reason: "PLUGGED".to_owned(),
        detail: None,
    }
}

/// A phone that is plugged in and out, this often.
fn flap(limits: &mut Limits, count: usize, out: &mut Vec<NewTransition>) {
    for turn in 0..count {
        let told = transition(phone(1), turn % 2, (turn + 1) % 2);
        limits.offer(told, Instant::now(), out);
    }
}

#[tokio::test(start_paused = true)]
async fn a_phone_that_flaps_is_recorded_to_its_burst_and_then_summed_up() {
    let (mut limits, mut out) = (Limits::default(), Vec::new());
    flap(&mut limits, 61, &mut out);
    tokio::time::advance(Duration::from_millis(2500)).await;
    for turn in 61..1000 {
        let told = transition(phone(1), turn % 2, (turn + 1) % 2);
        limits.offer(told, Instant::now(), &mut out);
    }
    assert_eq!(out.len(), 60);
    assert!(out.iter().all(|entry| entry.reason == "PLUGGED"));
    out.clear();

    let due = limits.due().unwrap();
    assert_eq!(due - Instant::now(), Duration::from_millis(7500));
    limits.release(due - Duration::from_millis(1), &mut out);
    assert_eq!(out, []);
    limits.release(due, &mut out);
    let [summary] = out.as_slice() else {
        panic!("{out:?}")
    };
    assert_eq!((&*summary.from, &*summary.to), ("DETACHED", "DETACHED"));
    assert_eq!(summary.reason, "TRANSITIONS_LEFT_OUT");
    let detail = summary.detail.as_deref().unwrap();
    assert!(
        detail.starts_with("940 transitions in the 10.0 s before"),
        "{detail}"
    );
    assert_eq!(limits.due(), None);
}

#[tokio::test(start_paused = true)]
async fn what_follows_what_was_left_out_is_preceded_by_its_summary() {
    let (mut limits, mut out) = (Limits::default(), Vec::new());
    flap(&mut limits, 63, &mut out);
    out.clear();
    tokio::time::advance(REFILL * 2).await;
    let told = transition(phone(1), 1, 3);
    limits.offer(told.clone(), Instant::now(), &mut out);
    let [summary, last] = out.as_slice() else {
        panic!("{out:?}")
    };
    assert_eq!(summary.reason, LEFT_OUT);
    assert_eq!((&*summary.from, &*summary.to), ("DETACHED", "ATTACHED"));
    assert_eq!(last, &told);
}

#[tokio::test(start_paused = true)]
async fn one_that_was_left_out_alone_is_recorded_as_it_is_only_later() {
    let (mut limits, mut out) = (Limits::default(), Vec::new());
    flap(&mut limits, 61, &mut out);
    out.clear();
    limits.release(limits.due().unwrap(), &mut out);
    assert_eq!(out, [transition(phone(1), 0, 1)]);
}

#[tokio::test(start_paused = true)]
async fn what_is_left_out_at_the_end_is_summed_up_then() {
    let (mut limits, mut out) = (Limits::default(), Vec::new());
    flap(&mut limits, 70, &mut out);
    out.clear();
    limits.finish(Instant::now(), &mut out);
    assert_eq!(out.len(), 1);
    assert_eq!(out[0].reason, LEFT_OUT);
}

#[tokio::test(start_paused = true)]
async fn one_phone_that_flaps_is_nothing_to_another_and_is_forgotten_when_it_is_calm() {
    let (mut limits, mut out) = (Limits::default(), Vec::new());
    flap(&mut limits, 1000, &mut out);
    out.clear();
    let told = transition(phone(2), 0, 1);
    limits.offer(told.clone(), Instant::now(), &mut out);
    assert_eq!(out, [told]);
    limits.release(Instant::now() + REFILL, &mut out);
    assert_eq!(out.len(), 2);
    limits.release(Instant::now() + REFILL * (BURST + 2), &mut out);
    assert!(limits.phones.is_empty());
}

#[derive(Debug, Clone)]
enum Act {
    /// So many transitions of a phone, through these states.
    Told(u64, Vec<usize>),
    Pass(Duration),
    /// As the writer does, when it is due.
    Wake,
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        (0..2_u64, prop::collection::vec(0..STATES.len(), 0..150))
            .prop_map(|(phone, states)| Act::Told(phone, states)),
        (0..40_000_u64).prop_map(|ms| Act::Pass(Duration::from_millis(ms))),
        Just(Act::Wake),
    ]
}

proptest! {
    #[test]
    fn the_recorded_history_is_unbroken_bounded_and_ends_where_the_phone_is(
        acts in prop::collection::vec(act(), 0..40),
    ) {
        let mut limits = Limits::default();
        let (mut now, mut states) = (Instant::now(), [0_usize; 2]);
        let (mut recorded, mut last) = (Vec::<(Instant, NewTransition)>::new(), Vec::new());
        for act in acts {
            let mut out = Vec::new();
            match act {
                Act::Told(number, path) => for to in path {
                    let from = &mut states[usize::try_from(number).unwrap()];
                    limits.offer(transition(phone(number), *from, to), now, &mut out);
                    *from = to;
                },
                Act::Pass(time) => now += time,
                Act::Wake => limits.release(now, &mut out),
            }
            recorded.extend(out.into_iter().map(|entry| (now, entry)));
        }
        limits.finish(now, &mut last);
        for (number, state) in (0..).zip(states) {
            let device = phone(number);
            let of: Vec<_> = recorded.iter().filter(|(_, entry)| entry.device == device).collect();
            // From each entry on, none of the windows that end with another one
            // has too many.
            for (begin, (from, _)) in of.iter().enumerate() {
                for (end, (until, _)) in of.iter().enumerate().skip(begin) {
                    let time = until.duration_since(*from).as_millis();
                    let most = u128::from(BURST) + time / REFILL.as_millis();
                    prop_assert!((end - begin + 1) as u128 <= most);
                }
            }
            let ending = last.iter().filter(|entry| entry.device == device);
            let chain = of.into_iter().map(|(_, entry)| entry).chain(ending);
            let mut at = STATES[0].to_owned();
            for entry in chain {
                prop_assert_eq!(&entry.from, &at);
                at.clone_from(&entry.to);
            }
            prop_assert_eq!(at, STATES[state]);
        }
    }
}
