//! What the tests of several layers share: commands, envelopes, a mocked inner
//! service with typed errors, and a recorder that remembers.

use std::collections::HashSet;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use fleetgate_runner::{
    AppAction, AppCommand, AppPoint, BundleId, Clearance, Command, CommandId, DeviceCommand,
    Envelope, Exchange, Fate, InvalidReply, JournalEntry, JournalState, Point, Reply, RunnerCode,
    RunnerError, SendError, TypedText, Udid, UnitPoint, Viewport,
};
use futures_util::future::BoxFuture;
use tokio::sync::watch;
use tokio::time::Instant;
use tower::util::MapErr;
use tower::{BoxError, Service, ServiceExt};
use tower_test::mock::{self, Handle, Mock, SendResponse};

use crate::dispatch::Dispatch;
use crate::job::Job;
use crate::leave::Leave;
use crate::origin::Origin;
use crate::record::{Conclusion, Record, RecordError, RecordErrorKind, Resolution};
use crate::turn::Turn;

pub(crate) const SECRET: &str = "hunter2-canary";

pub(crate) fn device() -> Udid {
    "00008110-000978540290401E".parse().unwrap()
}

pub(crate) fn id(name: &str) -> CommandId {
    name.parse().unwrap()
}

fn app<P>(bundle: &str, action: AppAction<P>) -> Command<P> {
    Command::App(AppCommand {
        bundle_id: bundle_id(bundle),
        action,
    })
}

pub(crate) fn bundle_id(bundle: &str) -> BundleId {
    bundle.parse().unwrap()
}

pub(crate) fn tap() -> Command<Point> {
    let at = Point::Absolute(AppPoint::new(10.0, 20.0).unwrap());
    app(
        "com.example",
        AppAction::Tap {
            at,
            taps: NonZeroU32::MIN,
        },
    )
}

/// A tap in the middle of whatever the viewport is.
pub(crate) fn tap_in_the_middle() -> Command<Point> {
    let at = Point::Normalized(UnitPoint::new(0.5, 0.5).unwrap());
    app(
        "com.example",
        AppAction::Tap {
            at,
            taps: NonZeroU32::MIN,
        },
    )
}

pub(crate) fn type_secret() -> Command<Point> {
    app(
        "com.example",
        AppAction::Type {
            text: TypedText::new(SECRET.to_owned()).unwrap(),
        },
    )
}

pub(crate) fn snapshot(bundle: &str) -> Command<Point> {
    app(bundle, AppAction::Snapshot)
}

pub(crate) fn viewport() -> Command<Point> {
    app("com.example", AppAction::Viewport)
}

pub(crate) fn screenshot() -> Command<Point> {
    Command::Device(DeviceCommand::Screenshot)
}

pub(crate) fn status() -> Command<Point> {
    Command::Device(DeviceCommand::Status)
}

pub(crate) fn job(name: &str, command: Command<Point>) -> Job {
    Job {
        command_id: id(name),
        command,
        deadline: None,
        origin: Origin {
            principal: Some("alice".to_owned()),
            ..Origin::default()
        },
        leave: Leave::unconditional(),
    }
}

pub(crate) fn job_within(name: &str, command: Command<Point>, time: Duration) -> Job {
    Job {
        deadline: Some(Instant::now() + time),
        ..job(name, command)
    }
}

pub(crate) fn turn(name: &str, command: Command<Point>) -> Turn {
    let resolved = command.clone().resolve(None).unwrap();
    Turn::from(job(name, command)).with(resolved)
}

pub(crate) fn dispatch(command: Command<Point>) -> Dispatch {
    Dispatch::of(&turn("c-1", command), Clearance::granted())
}

pub(crate) fn envelope(result: Result<Reply, RunnerError>) -> Envelope {
    Envelope {
        reactivated: false,
        warning: None,
        result,
    }
}

pub(crate) fn done() -> Envelope {
    envelope(Ok(Reply::Done("tapped".to_owned())))
}

pub(crate) fn frame() -> Viewport {
    Viewport {
        x: 0.0,
        y: 0.0,
        width: 400.0,
        height: 800.0,
    }
}

pub(crate) fn verdict(code: RunnerCode) -> Envelope {
    envelope(Err(RunnerError {
        code,
        message: "so it is".to_owned(),
        hint: None,
    }))
}

pub(crate) fn busy() -> Envelope {
    verdict(RunnerCode::RunnerBusy)
}

/// Every code but `RUNNER_BUSY`.
pub(crate) fn codes_but_busy() -> [RunnerCode; 12] {
    [
        RunnerCode::InvalidRequest,
        RunnerCode::AppBundleIdRequired,
        RunnerCode::AppNotAvailable,
        RunnerCode::AppBackgrounded,
        RunnerCode::TextInputNotFocused,
        RunnerCode::UnsupportedOperation,
        RunnerCode::RunnerWedged,
        RunnerCode::XctestRecordedFailure,
        RunnerCode::SnapshotFailed,
        RunnerCode::CommandTimedOut,
        RunnerCode::CommandFailed,
        RunnerCode::Other("NEW_CODE".to_owned()),
    ]
}

pub(crate) fn entry(name: &str, state: JournalState) -> JournalEntry {
    JournalEntry {
        command_id: id(name),
        state: Some(state),
        command: None,
        response_ok: None,
        response_json: None,
        error: None,
    }
}

pub(crate) fn journal(entry: JournalEntry) -> Envelope {
    envelope(Ok(Reply::CommandStatus(entry)))
}

pub(crate) fn broken() -> SendError {
    SendError::Broken(Arc::new(std::io::Error::from(
        std::io::ErrorKind::ConnectionReset,
    )))
}

pub(crate) fn garbage() -> SendError {
    InvalidReply::NotAnEnvelope {
        detail: "hello".to_owned(),
    }
    .into()
}

pub(crate) type Typed<Q, A, E> = MapErr<Mock<Q, A>, fn(BoxError) -> E>;

/// A mocked service whose errors have a type.
pub(crate) fn mocked<Q, A, E: std::error::Error + 'static>() -> (Typed<Q, A, E>, Handle<Q, A>) {
    let (mock, handle) = mock::pair();
    let typed: fn(BoxError) -> E = |error| *error.downcast().expect("an error of the mocked type");
    (mock.map_err(typed), handle)
}

/// Longer than anything here takes. Under a clock that is paused, what never
/// comes is found out at once.
const FOREVER: Duration = Duration::from_hours(24 * 365);

/// Waits for what must come.
pub(crate) async fn soon<T>(work: impl Future<Output = T>) -> T {
    let waited = tokio::time::timeout(FOREVER, work).await;
    waited.expect("it comes")
}

/// The next request, whose first byte the phone takes as soon as it may.
pub(crate) async fn sent(
    phone: &mut Handle<Exchange, Envelope>,
) -> (Exchange, SendResponse<Envelope>) {
    let (exchange, reply) = soon(phone.next_request()).await.unwrap();
    exchange.clearance.cleared().await.unwrap();
    exchange.sent.mark();
    (exchange, reply)
}

/// A recorder that remembers what it was given, and can be told to be slow or
/// to refuse.
#[derive(Debug, Clone)]
pub(crate) struct Ledger(Arc<Shelf>);

#[derive(Debug)]
struct Shelf {
    entries: Mutex<Vec<Record>>,
    known: Mutex<HashSet<CommandId>>,
    /// How many entries of each kind are still refused.
    refusals: Mutex<(usize, usize)>,
    /// How many resolutions are of fates that are known.
    settled: Mutex<usize>,
    open: watch::Sender<bool>,
    changed: watch::Sender<()>,
}

impl Ledger {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Shelf {
            entries: Mutex::default(),
            known: Mutex::default(),
            refusals: Mutex::default(),
            settled: Mutex::default(),
            open: watch::Sender::new(true),
            changed: watch::Sender::new(()),
        }))
    }

    /// Refuses the next so many intents and conclusions.
    pub(crate) fn refuse(&self, intents: usize, conclusions: usize) {
        *self.0.refusals.lock().unwrap() = (intents, conclusions);
    }

    /// Refuses so many resolutions because the fate is known already.
    pub(crate) fn refuse_as_settled(&self, resolutions: usize) {
        *self.0.settled.lock().unwrap() = resolutions;
    }

    /// The last resolution.
    pub(crate) fn resolution(&self) -> Resolution {
        let entries = self.0.entries.lock().unwrap();
        let mut resolutions = entries.iter().rev().filter_map(|record| match record {
            Record::Intent(_) | Record::Concluded(_) => None,
            Record::Resolved(resolution) => Some(Resolution::clone(resolution)),
        });
        resolutions.next().expect("a resolution")
    }

    /// While shut, nothing becomes durable.
    pub(crate) fn set_open(&self, open: bool) {
        self.0.open.send_replace(open);
    }

    /// Every entry as `intent ID` or `fate ID FATE`; `note` instead of `fate` if
    /// there was no intent.
    pub(crate) fn lines(&self) -> Vec<String> {
        let line = |record: &Record| match record {
            Record::Intent(intent) => format!("intent {}", intent.command_id),
            Record::Concluded(conclusion) => {
                let Conclusion {
                    intended, receipt, ..
                } = &**conclusion;
                let word = if *intended { "fate" } else { "note" };
                format!("{word} {} {:?}", receipt.command_id, receipt.fate)
            }
            Record::Resolved(resolution) => {
                let Resolution {
                    receipt,
                    settled_for_good,
                    ..
                } = &**resolution;
                let word = if *settled_for_good {
                    "for good"
                } else {
                    "so far"
                };
                format!("resolved {} {:?} {word}", receipt.command_id, receipt.fate)
            }
        };
        self.0.entries.lock().unwrap().iter().map(line).collect()
    }

    /// The last conclusion.
    pub(crate) fn conclusion(&self) -> Conclusion {
        let entries = self.0.entries.lock().unwrap();
        let conclusions = entries.iter().rev().filter_map(|record| match record {
            Record::Intent(_) | Record::Resolved(_) => None,
            Record::Concluded(conclusion) => Some(Conclusion::clone(conclusion)),
        });
        conclusions.take(1).next().expect("a conclusion")
    }

    /// Waits until a command's fate is on record.
    pub(crate) async fn fate(&self, name: &str) -> Fate {
        let fate = |record: &Record| match record {
            Record::Concluded(conclusion) if conclusion.receipt.command_id == id(name) => {
                Some(conclusion.receipt.fate)
            }
            Record::Intent(_) | Record::Concluded(_) | Record::Resolved(_) => None,
        };
        let mut changed = self.0.changed.subscribe();
        loop {
            changed.mark_unchanged();
            if let Some(fate) = self.0.entries.lock().unwrap().iter().find_map(fate) {
                return fate;
            }
            changed.changed().await.unwrap();
        }
    }

    fn take(&self, record: Record) -> Result<(), RecordError> {
        let refused = |kind| {
            Err(RecordError {
                kind,
                source: Arc::new(std::fmt::Error),
            })
        };
        let mut refusals = self.0.refusals.lock().unwrap();
        let left = match &record {
            Record::Intent(_) => &mut refusals.0,
            Record::Concluded(_) | Record::Resolved(_) => &mut refusals.1,
        };
        if *left > 0 {
            *left -= 1;
            return refused(RecordErrorKind::Unavailable);
        }
        let mut settled = self.0.settled.lock().unwrap();
        if *settled > 0 && matches!(record, Record::Resolved(_)) {
            *settled -= 1;
            return refused(RecordErrorKind::Duplicate);
        }
        if let Record::Intent(intent) = &record
            && !self
                .0
                .known
                .lock()
                .unwrap()
                .insert(intent.command_id.clone())
        {
            return refused(RecordErrorKind::Duplicate);
        }
        self.0.entries.lock().unwrap().push(record);
        self.0.changed.send_replace(());
        Ok(())
    }
}

impl Service<Record> for Ledger {
    type Response = ();
    type Error = RecordError;
    type Future = BoxFuture<'static, Result<(), RecordError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), RecordError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, record: Record) -> Self::Future {
        let ledger = self.clone();
        Box::pin(async move {
            let mut open = ledger.0.open.subscribe();
            open.wait_for(|open| *open)
                .await
                .expect("the ledger lives as long as this");
            ledger.take(record)
        })
    }
}
