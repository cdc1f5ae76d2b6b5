//! Any value that can be said on the wire.

use std::num::NonZeroU32;
use std::time::Duration;

use bytes::Bytes;
use fleetgate_runner::{
    AppAction, AppCommand, AppPoint, Button, Command, CommandId, CommandKind, DeviceCommand,
    Envelope, JournalEntry, JournalState, Node, Quality, QualityState, Rect, Reply, Request,
    RunnerCode, RunnerError, RunnerState, RunnerStatus, Screenshot, Snapshot, TypedText, Viewport,
};
use proptest::collection::vec;
use proptest::num::f64::{NEGATIVE, NORMAL, POSITIVE, SUBNORMAL, ZERO};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

fn finite() -> impl Strategy<Value = f64> + Clone {
    prop_oneof![
        -2000.0..2000.0,
        POSITIVE | NEGATIVE | NORMAL | SUBNORMAL | ZERO
    ]
}

fn point() -> impl Strategy<Value = AppPoint> + Clone {
    (finite(), finite()).prop_map(|(x, y)| AppPoint::new(x, y).unwrap())
}

/// Durations travel in whole milliseconds.
fn duration() -> impl Strategy<Value = Duration> + Clone {
    prop_oneof![0..100_000_u64, any::<u64>()].prop_map(Duration::from_millis)
}

fn command_id() -> impl Strategy<Value = CommandId> {
    "[!-~]{1,128}".prop_map(|id| id.parse().unwrap())
}

fn action() -> impl Strategy<Value = AppAction> {
    let taps = (1..=u32::MAX).prop_map(|taps| NonZeroU32::new(taps).unwrap());
    let text = "(?s).{1,40}".prop_map(|text| TypedText::new(text).unwrap());
    prop_oneof![
        Just(AppAction::Viewport),
        (point(), taps).prop_map(|(at, taps)| AppAction::Tap { at, taps }),
        (point(), option::of(duration()))
            .prop_map(|(at, duration)| AppAction::LongPress { at, duration }),
        (
            point(),
            point(),
            option::of(duration()),
            option::of(duration()),
            any::<bool>()
        )
            .prop_map(|(from, to, duration, hold, settle)| AppAction::Drag {
                from,
                to,
                duration,
                hold,
                settle
            }),
        text.prop_map(|text| AppAction::Type { text }),
        Just(AppAction::KeyboardReturn),
        Just(AppAction::KeyboardDelete),
        Just(AppAction::Snapshot),
    ]
}

fn device_command() -> impl Strategy<Value = DeviceCommand> {
    prop_oneof![
        Just(DeviceCommand::Status),
        command_id().prop_map(|of| DeviceCommand::CommandStatus { of }),
        select(&Button::ALL[..]).prop_map(|button| DeviceCommand::Button { button }),
        Just(DeviceCommand::Screenshot),
        Just(DeviceCommand::Shutdown),
    ]
}

fn command() -> impl Strategy<Value = Command> {
    let bundle_id = "[A-Za-z0-9._-]{1,40}".prop_map(|id| id.parse().unwrap());
    prop_oneof![
        (bundle_id, action())
            .prop_map(|(bundle_id, action)| Command::App(AppCommand { bundle_id, action })),
        device_command().prop_map(Command::Device),
    ]
}

/// Any request that a client can mean: `status` travels without an id.
pub(crate) fn request() -> impl Strategy<Value = Request> {
    (option::of(command_id()), command()).prop_map(|(command_id, command)| Request {
        command_id: command_id.filter(|_| !command.kind().bypasses_queue()),
        command,
    })
}

fn text() -> impl Strategy<Value = String> {
    "(?s).{0,20}"
}

fn error() -> impl Strategy<Value = RunnerError> {
    let code = prop_oneof!["[A-Z_]{1,24}", Just("RUNNER_BUSY".to_owned()), text()];
    (code.prop_map(RunnerCode::from), text(), option::of(text())).prop_map(
        |(code, message, hint)| RunnerError {
            code,
            message,
            hint,
        },
    )
}

fn rect() -> impl Strategy<Value = Rect> {
    (finite(), finite(), finite(), finite()).prop_map(|(x, y, width, height)| Rect {
        x,
        y,
        width,
        height,
    })
}

fn node() -> impl Strategy<Value = Node> {
    let words = (
        text(),
        option::of(text()),
        option::of(text()),
        option::of(text()),
    );
    let flags = (
        option::of(any::<bool>()),
        option::of(any::<bool>()),
        option::of(any::<bool>()),
    );
    let places = (any::<u32>(), any::<u32>(), option::of(any::<u32>()));
    (words, flags, places, rect()).prop_map(
        |(
            (kind, label, identifier, value),
            (enabled, focused, selected),
            (index, depth, parent_index),
            rect,
        )| Node {
            index,
            kind,
            label,
            identifier,
            value,
            rect,
            enabled,
            focused,
            selected,
            depth,
            parent_index,
        },
    )
}

fn snapshot() -> impl Strategy<Value = Snapshot> {
    let quality = (text(), text(), option::of(text()), option::of(text())).prop_map(
        |(state, backend, reason, reason_code)| Quality {
            state: QualityState::from(state),
            backend,
            reason,
            reason_code,
        },
    );
    (vec(node(), 0..6), quality).prop_map(|(nodes, quality)| Snapshot { nodes, quality })
}

fn status() -> impl Strategy<Value = RunnerStatus> {
    let state = prop_oneof!["idle|busy|wedged", text()].prop_map(RunnerState::from);
    (duration(), state, any::<u64>(), any::<u64>()).prop_map(
        |(uptime, state, suppressed_issues, recorded_failures)| RunnerStatus {
            uptime,
            state,
            suppressed_issues,
            recorded_failures,
        },
    )
}

fn entry() -> impl Strategy<Value = JournalEntry> {
    let word = option::of(select(&JournalState::ALL[..]));
    let reply = (
        option::of(any::<bool>()),
        option::of(text()),
        option::of(error()),
    );
    (command_id(), word, option::of(text()), reply).prop_map(
        |(command_id, state, command, (response_ok, response_json, error))| JournalEntry {
            command_id,
            state,
            command,
            response_ok,
            response_json,
            error,
        },
    )
}

fn reply(kind: CommandKind) -> BoxedStrategy<Reply> {
    match kind {
        CommandKind::Viewport => (finite(), finite(), 0.1..1e6, 0.1..1e6)
            .prop_map(|(x, y, width, height)| Viewport {
                x,
                y,
                width,
                height,
            })
            .prop_filter("a frame whose edges are numbers", Viewport::is_usable)
            .prop_map(Reply::Viewport)
            .boxed(),
        CommandKind::Snapshot => snapshot().prop_map(Reply::Snapshot).boxed(),
        CommandKind::Screenshot => vec(any::<u8>(), 0..200)
            .prop_map(|png| {
                Reply::Screenshot(Screenshot {
                    png: Bytes::from(png),
                })
            })
            .boxed(),
        CommandKind::Status => status().prop_map(Reply::Status).boxed(),
        CommandKind::CommandStatus => entry().prop_map(Reply::CommandStatus).boxed(),
        CommandKind::Tap
        | CommandKind::LongPress
        | CommandKind::Drag
        | CommandKind::Type
        | CommandKind::KeyboardReturn
        | CommandKind::KeyboardDelete
        | CommandKind::Button
        | CommandKind::Shutdown => text().prop_map(Reply::Done).boxed(),
    }
}

pub(crate) fn kind() -> impl Strategy<Value = CommandKind> {
    select(&CommandKind::ALL[..])
}

/// Any envelope, and the kind of the command that it answers.
pub(crate) fn envelope() -> impl Strategy<Value = (CommandKind, Envelope)> {
    kind().prop_flat_map(|kind| {
        let result = prop_oneof![reply(kind).prop_map(Ok), error().prop_map(Err)];
        (any::<bool>(), option::of(text()), result).prop_map(
            move |(reactivated, warning, result)| {
                (
                    kind,
                    Envelope {
                        reactivated,
                        warning,
                        result,
                    },
                )
            },
        )
    })
}
