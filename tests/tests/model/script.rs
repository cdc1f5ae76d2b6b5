//! What a seed fixes: which commands are sent to which phone, in which order,
//! by what kind of caller, and what goes wrong meanwhile.
//!
//! A phone's script is a row of episodes. Each begins with trouble, or none,
//! goes on with a few commands, and ends with the phone made whole, so that
//! trouble does not pile up until nothing works any more.

use std::time::Duration;

use fleetgate_runner::{CommandKind, RunnerCode};
use fleetgate_simulator::scenario::DEFAULT_PORT;
use fleetgate_simulator::{Asked, Fault, Ids, Injection, Odd, Oddity};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};

/// What the one who called does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Caller {
    /// Waits for the answer.
    Stays,
    /// Waits for the answer, which is asked for by two calls with one id.
    AsksTwice,
    /// Goes away after so many milliseconds.
    Leaves(u64),
    /// Goes away after so many milliseconds, and asks again.
    Returns(u64),
    /// Sets a deadline of so many milliseconds.
    Hurries(u64),
}

/// One command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Command {
    pub(crate) id: String,
    pub(crate) kind: CommandKind,
    pub(crate) caller: Caller,
    /// The script goes on before it is answered.
    pub(crate) aside: bool,
}

/// What is done to a phone by hand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hand {
    Replug,
    Detach,
    Attach,
    KillRunner,
    RestartRunner,
    MoveRunner,
    Lock,
    LeaveApp,
    QuitApp,
}

/// One step of a phone's script.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    Send(Command),
    Fault(Fault),
    Hand(Hand),
    /// So many milliseconds.
    Wait(u64),
    /// Everything that was sent is answered, and the phone is made whole.
    Heal,
}

/// What befalls all phones at once. That usbmuxd gives old numbers to other
/// phones is left to the fault matrix, which has a test of its own for it.
#[derive(Debug, Clone)]
pub(crate) enum Upheaval {
    RestartUsbmuxd(Ids),
    /// Gone for so many milliseconds.
    StopUsbmuxd(u64),
    /// Deaf for so many milliseconds.
    StallUsbmuxd(u64),
    Odd(Oddity),
    /// The gateway is ended properly, and another is started on its ledger.
    RestartGateway,
}

/// Everything that a seed fixes.
#[derive(Debug)]
pub(crate) struct Script {
    pub(crate) phones: Vec<Vec<Step>>,
    /// What befalls all, and how many milliseconds after the last.
    pub(crate) upheavals: Vec<(u64, Upheaval)>,
}

impl Script {
    /// The script of a seed.
    pub(crate) fn new(seed: u64, phones: usize, commands_each: usize) -> Self {
        let mut rng = StdRng::seed_from_u64(seed);
        Self {
            phones: (0..phones)
                .map(|phone| of_a_phone(&mut rng, phone, commands_each))
                .collect(),
            upheavals: (0..1000)
                .map(|_| (rng.random_range(150..1500), upheaval(&mut rng)))
                .collect(),
        }
    }
}

fn of_a_phone(rng: &mut StdRng, phone: usize, commands: usize) -> Vec<Step> {
    let (mut steps, mut sent) = (Vec::new(), 0);
    while sent < commands {
        if rng.random_bool(0.75) {
            steps.extend(trouble(rng));
        }
        for _ in 0..rng.random_range(1..=6).min(commands - sent) {
            sent += 1;
            let id = format!("p{phone}-c{sent}");
            steps.push(Step::Send(command(rng, id)));
            if rng.random_bool(0.15) {
                steps.push(Step::Hand(hand(rng)));
            }
            if rng.random_bool(0.1) {
                steps.push(Step::Wait(rng.random_range(1..30)));
            }
        }
        steps.push(Step::Heal);
    }
    steps
}

fn command(rng: &mut StdRng, id: String) -> Command {
    const KINDS: [(CommandKind, u32); 11] = [
        (CommandKind::Tap, 12),
        (CommandKind::LongPress, 3),
        (CommandKind::Drag, 3),
        (CommandKind::Type, 4),
        (CommandKind::KeyboardReturn, 2),
        (CommandKind::KeyboardDelete, 2),
        (CommandKind::Button, 3),
        (CommandKind::Shutdown, 1),
        (CommandKind::Viewport, 1),
        (CommandKind::Snapshot, 1),
        (CommandKind::Status, 1),
    ];
    let (kind, _) = *KINDS
        .choose_weighted(rng, |(_, weight)| *weight)
        .expect("weights");
    let caller = match rng.random_range(0..20) {
        0..=10 => Caller::Stays,
        11..=12 => Caller::AsksTwice,
        13..=14 => Caller::Leaves(rng.random_range(0..60)),
        15..=16 => Caller::Returns(rng.random_range(0..60)),
        _ => Caller::Hurries(rng.random_range(1..80)),
    };
    let aside = rng.random_bool(0.4);
    Command {
        id,
        kind,
        caller,
        aside,
    }
}

/// Faults and hands that an episode begins with.
fn trouble(rng: &mut StdRng) -> Vec<Step> {
    (0..rng.random_range(1..=3))
        .map(|_| {
            if rng.random_bool(0.12) {
                Step::Hand(hand(rng))
            } else {
                Step::Fault(fault(rng))
            }
        })
        .collect()
}

fn hand(rng: &mut StdRng) -> Hand {
    const HANDS: [(Hand, u32); 9] = [
        (Hand::Replug, 6),
        (Hand::Detach, 1),
        (Hand::Attach, 4),
        (Hand::KillRunner, 1),
        (Hand::RestartRunner, 4),
        (Hand::MoveRunner, 1),
        (Hand::Lock, 1),
        (Hand::LeaveApp, 2),
        (Hand::QuitApp, 1),
    ];
    HANDS
        .choose_weighted(rng, |(_, weight)| *weight)
        .expect("weights")
        .0
}

fn fault(rng: &mut StdRng) -> Fault {
    let times = rng.random_range(1..=2);
    Fault::from(injection(rng))
        .times(times)
        .skip(rng.random_range(0..=2))
}

fn injection(rng: &mut StdRng) -> Injection {
    use Injection as I;
    let seconds = |rng: &mut StdRng, range| Duration::from_secs(rng.random_range(range));
    match rng.random_range(0..26) {
        0..=1 => {
            let numbers = [1, 2, 3, 4, 6, 99];
            let number = *numbers.choose(rng).expect("numbers");
            I::ConnectResult { number }
        }
        2 => I::DropConnection,
        3 => I::HalfOpen,
        4 => I::Replug,
        5 => I::ReplyLostBeforeExecution,
        6..=7 => I::ReplyLostDuringExecution,
        8..=9 => I::Busy,
        10..=12 => I::Slow {
            by: seconds(rng, 1..25),
        },
        13 => I::Slow {
            by: seconds(rng, 60..120),
        },
        14 => I::NeverEnds,
        15..=16 => error(rng),
        17 => [I::RecordedFailure, I::SuppressedIssue, I::ActivationFails]
            .choose(rng)
            .expect("injections")
            .clone(),
        18 => I::LongMessage { bytes: 20_000 },
        19 => I::Killed {
            after_effect: rng.random(),
            restart_on: rng.random_bool(0.9).then_some(DEFAULT_PORT),
        },
        20..=22 => I::ReplyLostAfterExecution,
        23 => I::PartialReply,
        24 => I::TruncatedReply,
        _ => [I::GarbageReply, I::NotJson, I::NotAnEnvelope, I::EchoText]
            .choose(rng)
            .expect("injections")
            .clone(),
    }
}

/// A verdict that a runner may give: one that claims to have done nothing comes
/// before the effect.
fn error(rng: &mut StdRng) -> Injection {
    use RunnerCode as C;
    let vague = [
        C::CommandFailed,
        C::CommandTimedOut,
        C::XctestRecordedFailure,
        C::Other("NEVER_HEARD_OF".to_owned()),
    ];
    let firm = [C::AppNotAvailable, C::UnsupportedOperation];
    let after_effect = rng.random_bool(0.5);
    let code = if after_effect || rng.random() {
        vague.choose(rng)
    } else {
        firm.choose(rng)
    };
    Injection::Error {
        code: code.expect("codes").clone(),
        message: "said so".to_owned(),
        hint: None,
        after_effect,
    }
}

fn upheaval(rng: &mut StdRng) -> Upheaval {
    match rng.random_range(0..10) {
        0..=3 => Upheaval::RestartUsbmuxd(Ids::Fresh),
        4 => Upheaval::StopUsbmuxd(rng.random_range(5..100)),
        5 => Upheaval::StallUsbmuxd(rng.random_range(5..60)),
        6..=7 => {
            let odds = [
                Odd::WrongTag,
                Odd::Length { length: u32::MAX },
                Odd::Cut { bytes: 9 },
                Odd::Silence,
            ];
            let odd = odds.choose(rng).expect("oddities").clone();
            Upheaval::Odd(Oddity::from(odd).on(Asked::Connect))
        }
        _ => Upheaval::RestartGateway,
    }
}

#[test]
fn a_seed_fixes_the_script() {
    let told = |seed| format!("{:?}", Script::new(seed, 3, 20));
    assert_eq!(told(7), told(7));
    assert_ne!(told(7), told(8));
}
