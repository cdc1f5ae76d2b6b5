//! The rows of the matrix: everything that can go wrong with one command.
//!
//! A row is data: the faults that wait on the phone, and what is done by hand
//! before the command comes or while it runs.

use std::time::Duration;

use fleetgate_runner::{CommandKind, RunnerCode};
use fleetgate_simulator::scenario::DEFAULT_PORT;
use fleetgate_simulator::{Asked, Fault, Ids, Injection, Odd, Oddity};

use crate::faults::{Stage, befalls};

/// Where a runner comes up that the gateway does not know of.
const OTHER_PORT: u16 = DEFAULT_PORT + 1;

/// What somebody does to a phone or its usbmuxd.
#[derive(Debug, Clone)]
pub(crate) enum Hand {
    Replug,
    Detach,
    KillRunner,
    RestartRunner,
    MoveRunner,
    Evict,
    Lock,
    LeaveApp,
    QuitApp,
    RestartUsbmuxd(Ids),
    StopUsbmuxd,
    StallUsbmuxd,
    Odd(Oddity),
}

/// One row.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    pub(crate) name: String,
    /// The one command that it can befall, if there is only one.
    pub(crate) only: Option<CommandKind>,
    /// Those that need not befall a connection befall this command only.
    pub(crate) faults: Vec<Fault>,
    /// How many answers about the command are lost.
    pub(crate) deaf: u32,
    pub(crate) before: Vec<Hand>,
    pub(crate) meanwhile: Vec<Hand>,
}

impl Row {
    fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            only: None,
            faults: Vec::new(),
            deaf: 0,
            before: Vec::new(),
            meanwhile: Vec::new(),
        }
    }

    fn faults<F: Into<Fault>>(self, faults: impl IntoIterator<Item = F>) -> Self {
        Self {
            faults: faults.into_iter().map(Into::into).collect(),
            ..self
        }
    }

    fn before(self, hand: Hand) -> Self {
        Self {
            before: vec![hand],
            ..self
        }
    }

    /// While the command runs, which it does for long enough.
    fn meanwhile(self, hands: impl IntoIterator<Item = Hand>) -> Self {
        Self {
            meanwhile: hands.into_iter().collect(),
            ..self.faults([SLOW])
        }
    }

    /// The faults as they wait on a phone for a command.
    pub(crate) fn queue(&self, on: CommandKind) -> Vec<Fault> {
        let aimed = |fault: Fault| match befalls(&fault.inject).1 {
            Stage::Connection => fault,
            Stage::Execution | Stage::Elsewhere | Stage::Nowhere => fault.on(on),
        };
        let mut queue: Vec<_> = self.faults.iter().cloned().map(aimed).collect();
        if self.deaf > 0 {
            let deaf = Fault::from(Injection::ReplyLostAfterExecution);
            queue.push(deaf.on(CommandKind::CommandStatus).times(self.deaf));
        }
        queue
    }

    /// True if usbmuxd gives a phone's old number to another phone.
    pub(crate) fn confuses_phones(&self) -> bool {
        let reuses =
            |fault: &Fault| matches!(fault.inject, Injection::UsbmuxdRestart { reuse_ids: true });
        let hands = self.before.iter().chain(&self.meanwhile);
        let mut restarts = hands.map(|hand| matches!(hand, Hand::RestartUsbmuxd(Ids::Reused)));
        self.faults.iter().any(reuses) || restarts.any(|reused| reused)
    }

    /// True if a fault strikes at this stage.
    pub(crate) fn strikes(&self, stage: Stage) -> bool {
        let at = |fault: &Fault| befalls(&fault.inject).1 == stage;
        self.faults.iter().any(at)
    }
}

/// Long enough to do something meanwhile, and well within every budget.
pub(crate) const SLOW: Injection = Injection::Slow {
    by: Duration::from_secs(15),
};

/// More than any budget.
const OVERRUN: Injection = Injection::Slow {
    by: Duration::from_secs(85),
};

fn error(code: RunnerCode, after_effect: bool) -> Injection {
    Injection::Error {
        code,
        message: "said so".to_owned(),
        hint: None,
        after_effect,
    }
}

fn killed(after_effect: bool, restart_on: Option<u16>) -> Injection {
    Injection::Killed {
        after_effect,
        restart_on,
    }
}

/// All rows.
pub(crate) fn all() -> Vec<Row> {
    let mut rows = vec![Row::new("nothing")];
    rows.extend(single());
    rows.extend(errors());
    rows.extend(combined());
    rows.extend(by_hand());
    rows.extend(odd_daemons());
    rows
}

/// One fault, in each form that makes a difference.
fn single() -> Vec<Row> {
    use Injection as I;
    let mut rows: Vec<_> = [1, 2, 3, 4, 6, 99]
        .map(|number| {
            let name = format!("connect_result {number}");
            Row::new(name).faults([I::ConnectResult { number }])
        })
        .into();
    let ports = [
        ("nowhere", None),
        ("in its place", Some(DEFAULT_PORT)),
        ("elsewhere", Some(OTHER_PORT)),
    ];
    for (place, restart_on) in ports {
        for (when, after) in [("before", false), ("after", true)] {
            let name = format!("killed {when} the effect, restarted {place}");
            rows.push(Row::new(name).faults([killed(after, restart_on)]));
        }
    }
    let plain = [
        ("drop_connection", I::DropConnection),
        ("half_open", I::HalfOpen),
        (
            "usbmuxd_restart, fresh numbers",
            I::UsbmuxdRestart { reuse_ids: false },
        ),
        (
            "usbmuxd_restart, numbers of others",
            I::UsbmuxdRestart { reuse_ids: true },
        ),
        ("replug", I::Replug),
        ("reply_lost_before_execution", I::ReplyLostBeforeExecution),
        ("reply_lost_during_execution", I::ReplyLostDuringExecution),
        ("slow, within its budget", SLOW),
        ("slow, beyond its budget", OVERRUN),
        ("never_ends", I::NeverEnds),
        ("recorded_failure", I::RecordedFailure),
        ("suppressed_issue", I::SuppressedIssue),
        ("long_message", I::LongMessage { bytes: 100_000 }),
        ("journal_evicted", I::JournalEvicted),
        ("reply_lost_after_execution", I::ReplyLostAfterExecution),
        ("garbage_reply", I::GarbageReply),
        ("not_json", I::NotJson),
        ("not_an_envelope", I::NotAnEnvelope),
        (
            "reply_body",
            I::ReplyBody {
                body: r#"{"fine":true}"#.to_owned(),
            },
        ),
        ("partial_reply", I::PartialReply),
        ("truncated_reply", I::TruncatedReply),
    ];
    rows.extend(plain.map(|(name, fault)| Row::new(name).faults([fault])));
    for times in [1, 3, 500] {
        let name = format!("busy {times} times");
        rows.push(Row::new(name).faults([Fault::from(I::Busy).times(times)]));
    }
    rows.push(Row {
        only: Some(CommandKind::Type),
        ..Row::new("echo_text").faults([I::EchoText])
    });
    // Two dozen megabytes take their time in a debug build: one command will do.
    let bytes = fleetgate_runner::MAX_REPLY_BYTES + 1;
    rows.push(Row {
        only: Some(CommandKind::Button),
        ..Row::new("oversize_reply").faults([I::OversizeReply { bytes }])
    });
    let hidden = Row::new("activation_fails").before(Hand::LeaveApp);
    rows.push(hidden.faults([I::ActivationFails]));
    rows
}

/// Verdicts, before the effect and, where they claim nothing about it, after.
fn errors() -> Vec<Row> {
    use RunnerCode as C;
    let codes = [
        C::InvalidRequest,
        C::AppBundleIdRequired,
        C::AppNotAvailable,
        C::TextInputNotFocused,
        C::UnsupportedOperation,
        C::CommandFailed,
        C::CommandTimedOut,
        C::XctestRecordedFailure,
        C::Other("NEVER_HEARD_OF".to_owned()),
    ];
    let before = codes.iter().map(|code| (code, false));
    let vague = codes.iter().skip(5).map(|code| (code, true));
    before
        .chain(vague)
        .map(|(code, after)| {
            let when = if after { "after" } else { "before" };
            let name = format!("{code} {when} the effect");
            Row::new(name).faults([error(code.clone(), after)])
        })
        .collect()
}

/// Faults that together do more than each.
fn combined() -> Vec<Row> {
    use Injection as I;
    let lost = I::ReplyLostAfterExecution;
    let long = I::LongMessage { bytes: 20_000 };
    let failed = |after| error(RunnerCode::CommandFailed, after);
    let second = |injection| Fault::from(injection).skip(1);
    let busy = Fault::from(I::Busy);
    let deaf = |times, name: &str| Row {
        deaf: times,
        ..Row::new(name).faults([lost.clone()])
    };
    vec![
        Row::new("a lost reply, not retained").faults([long, lost.clone()]),
        Row::new("a lost reply, evicted").faults([I::JournalEvicted, lost.clone()]),
        Row::new("a lost error before the effect").faults([failed(false), lost.clone()]),
        Row::new("a lost error after the effect").faults([failed(true), lost.clone()]),
        Row::new("a lost reply after busy").faults([I::Busy, lost.clone()]),
        Row::new("a half-open connection after busy").faults([busy.clone(), second(I::HalfOpen)]),
        Row::new("forgotten after busy").faults([busy, second(I::ReplyLostBeforeExecution)]),
        Row::new("lost while it runs").faults([SLOW, I::ReplyLostDuringExecution]),
        Row::new("lost while it overruns").faults([OVERRUN, I::ReplyLostDuringExecution]),
        Row::new("lost while it never ends").faults([I::NeverEnds, I::ReplyLostDuringExecution]),
        Row::new("lost, then killed").faults([
            killed(true, Some(DEFAULT_PORT)),
            I::ReplyLostDuringExecution,
        ]),
        Row::new("a refused connection, then a lost reply")
            .faults([I::ConnectResult { number: 2 }, lost.clone()]),
        deaf(1, "a lost reply, and one lost answer about it"),
        deaf(500, "a lost reply, and no answer about it"),
    ]
}

/// What people do.
fn by_hand() -> Vec<Row> {
    let mut rows = vec![
        Row::new("no cable").before(Hand::Detach),
        Row::new("no runner").before(Hand::KillRunner),
        Row::new("a runner elsewhere").before(Hand::MoveRunner),
        Row::new("a locked phone").before(Hand::Lock),
        Row::new("an app in the background").before(Hand::LeaveApp),
        Row::new("no app").before(Hand::QuitApp),
        Row::new("no usbmuxd").before(Hand::StopUsbmuxd),
        Row::new("a stalled usbmuxd").before(Hand::StallUsbmuxd),
    ];
    let meanwhile = [
        ("replugged", vec![Hand::Replug]),
        ("unplugged", vec![Hand::Detach]),
        ("evicted", vec![Hand::Evict]),
        ("the runner killed", vec![Hand::KillRunner]),
        ("the runner restarted", vec![Hand::RestartRunner]),
        ("the runner moved", vec![Hand::MoveRunner]),
        ("usbmuxd restarted", vec![Hand::RestartUsbmuxd(Ids::Fresh)]),
        (
            "usbmuxd restarted with old numbers",
            vec![Hand::RestartUsbmuxd(Ids::Reused)],
        ),
        ("usbmuxd stopped", vec![Hand::StopUsbmuxd]),
        ("usbmuxd stalled", vec![Hand::StallUsbmuxd, Hand::Replug]),
    ];
    let meanwhile = meanwhile.map(|(what, hands)| {
        let name = format!("{what} while it runs");
        Row::new(name).meanwhile(hands)
    });
    rows.extend(meanwhile);
    rows
}

/// Answers of usbmuxd to the Connect that are legal and unusual, or not legal.
/// One that trickles in is left out: a command that is slow as well outlasts its
/// window, and then nothing keeps the next one from being sent.
fn odd_daemons() -> Vec<Row> {
    let odds = [
        Odd::BinaryPlist,
        Odd::VersionZero,
        Odd::WrongTag,
        Odd::Length { length: 0 },
        Odd::Length { length: u32::MAX },
        Odd::Cut { bytes: 7 },
        Odd::Silence,
        Odd::UnknownEvent {
            message_type: "Surprised".to_owned(),
        },
        Odd::Paired { device: 1 },
    ];
    odds.map(|odd| {
        let name = format!("usbmuxd answers with {odd:?}");
        // As often as there are cells, so that each may meet it.
        let oddity = Oddity::from(odd).on(Asked::Connect);
        Row::new(name).before(Hand::Odd(oddity))
    })
    .into()
}
