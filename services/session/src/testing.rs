//! What the tests of several layers share: commands, envelopes, a mocked inner
//! service with typed errors, and a recorder that remembers.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use fleetgate_runner::{
    AppAction, AppCommand, AppPoint, BundleId, Clearance, Command, CommandId, DeviceCommand,
    Envelope, Exchange, InvalidReply, JournalEntry, JournalState, Point, Reply, RunnerCode,
    RunnerError, SendError, TypedText, Udid, UnitPoint, Viewport,
};
use tokio::sync::watch;
use tokio::time::Instant;
use tower::util::MapErr;
use tower::{BoxError, ServiceExt};
use tower_test::mock::{self, Handle, Mock, SendResponse};

use crate::dispatch::Dispatch;
use crate::job::Job;
use crate::leave::{Leave, Withdrawn};
use crate::origin::Origin;
use crate::turn::Turn;

mod ledger;

pub(crate) use ledger::Ledger;

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

/// Leave, and its giver.
pub(crate) fn leave() -> (watch::Sender<Option<Withdrawn>>, Leave) {
    let (giver, receiver) = watch::channel(None);
    (giver, Leave::until(receiver))
}

pub(crate) fn withdrawn(reason: &'static str) -> Withdrawn {
    Withdrawn {
        reason,
        message: "so it is".to_owned(),
        hint: Some("ask for it again".to_owned()),
    }
}

pub(crate) fn job_by(leave: &Leave, name: &str, command: Command<Point>) -> Job {
    Job {
        leave: leave.clone(),
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
