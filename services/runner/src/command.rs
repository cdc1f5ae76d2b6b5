//! The commands, as the gateway's domain and as the runner understands them.
//!
//! A [`Command`] is generic over its points. A caller may name a place as a
//! fraction of the viewport, so a command arrives as `Command<Point>`; what is
//! put on the wire is always a `Command<AppPoint>`, and only that can be
//! serialised. [`Command::resolve`] is the one way from the former to the
//! latter.

use std::fmt;
use std::num::NonZeroU32;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::budget::CommandClass;
use crate::ids::{BundleId, CommandId};
use crate::reply::Viewport;

/// A place in an app's own points. Finite: [`AppPoint::new`] sees to that.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct AppPoint {
    /// Points from the left edge.
    pub x: f64,
    /// Points from the top edge.
    pub y: f64,
}

impl AppPoint {
    /// The place; `None` unless both numbers are finite.
    pub fn new(x: f64, y: f64) -> Option<Self> {
        (x.is_finite() && y.is_finite()).then_some(Self { x, y })
    }
}

/// A place as fractions of a viewport. Finite: [`UnitPoint::new`] sees to
/// that; what lies outside 0 to 1 is clamped by [`Viewport::at`].
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct UnitPoint {
    /// 0 is the left edge.
    pub x: f64,
    /// 0 is the top edge.
    pub y: f64,
}

impl UnitPoint {
    /// The place; `None` unless both numbers are finite.
    pub fn new(x: f64, y: f64) -> Option<Self> {
        (x.is_finite() && y.is_finite()).then_some(Self { x, y })
    }
}

/// A place as a caller may give it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Point {
    /// In the app's points.
    Absolute(AppPoint),
    /// Relative to the viewport at the moment of execution.
    Normalized(UnitPoint),
}

impl Point {
    fn resolve(self, viewport: Option<&Viewport>) -> Option<AppPoint> {
        match self {
            Self::Absolute(point) => Some(point),
            Self::Normalized(unit) => viewport.map(|viewport| viewport.at(unit)),
        }
    }
}

/// Text that is typed: a secret, so that formatting it shows its length only.
#[derive(Clone, PartialEq, Eq)]
pub struct TypedText(String);

impl TypedText {
    /// Takes the text; `None` if it is empty.
    pub fn new(text: String) -> Option<Self> {
        (!text.is_empty()).then_some(Self(text))
    }

    /// The text itself. Only the wire may see it.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Its length in Unicode scalar values: what may be recorded of it.
    pub fn chars(&self) -> usize {
        self.0.chars().count()
    }
}

impl fmt::Debug for TypedText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TypedText({} chars)", self.chars())
    }
}

/// A hardware button that the protocol can press.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Button {
    /// Home.
    Home,
    /// Volume up.
    VolumeUp,
    /// Volume down.
    VolumeDown,
    /// The Action button, which not every phone has.
    ActionButton,
}

impl Button {
    /// Every button.
    pub const ALL: [Self; 4] = [
        Self::Home,
        Self::VolumeUp,
        Self::VolumeDown,
        Self::ActionButton,
    ];

    /// Its name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Home => "home",
            Self::VolumeUp => "volumeUp",
            Self::VolumeDown => "volumeDown",
            Self::ActionButton => "actionButton",
        }
    }

    /// The button of this name.
    pub fn from_wire(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|button| button.as_str() == name)
    }
}

/// One command to a runner.
#[derive(Debug, Clone, PartialEq)]
pub enum Command<P = AppPoint> {
    /// One that names its app.
    App(AppCommand<P>),
    /// One that concerns the whole phone.
    Device(DeviceCommand),
}

/// A command to one app, which is never inferred.
#[derive(Debug, Clone, PartialEq)]
pub struct AppCommand<P = AppPoint> {
    /// The app.
    pub bundle_id: BundleId,
    /// What to do.
    pub action: AppAction<P>,
}

/// What can be done to an app.
#[derive(Debug, Clone, PartialEq)]
pub enum AppAction<P = AppPoint> {
    /// Read its frame.
    Viewport,
    /// Tap.
    Tap {
        /// Where.
        at: P,
        /// How often; 2 is one double tap.
        taps: NonZeroU32,
    },
    /// Press and hold.
    LongPress {
        /// Where.
        at: P,
        /// How long; the runner has a default.
        duration: Option<Duration>,
    },
    /// Press, move, lift.
    Drag {
        /// Where it begins.
        from: P,
        /// Where it ends.
        to: P,
        /// How long the movement takes; the runner has a default.
        duration: Option<Duration>,
        /// How long to rest before moving; the runner has a default.
        hold: Option<Duration>,
        /// Rest before lifting.
        settle: bool,
    },
    /// Type into the focused input.
    Type {
        /// What.
        text: TypedText,
    },
    /// Press the submit key.
    KeyboardReturn,
    /// Delete one character.
    KeyboardDelete,
    /// Read the accessibility tree.
    Snapshot,
}

/// What can be done to a whole phone.
#[derive(Debug, Clone, PartialEq)]
pub enum DeviceCommand {
    /// Read the runner's health.
    Status,
    /// Look an id up in the runner's journal: `status` with `statusCommandId`.
    CommandStatus {
        /// The id.
        of: CommandId,
    },
    /// Press a hardware button.
    Button {
        /// Which.
        button: Button,
    },
    /// Take a picture of the screen.
    Screenshot,
    /// End the runner's session.
    Shutdown,
}

/// The name of a command. `CommandStatus` travels as `status`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum CommandKind {
    /// [`AppAction::Viewport`].
    Viewport,
    /// [`AppAction::Tap`].
    Tap,
    /// [`AppAction::LongPress`].
    LongPress,
    /// [`AppAction::Drag`].
    Drag,
    /// [`AppAction::Type`].
    Type,
    /// [`AppAction::KeyboardReturn`].
    KeyboardReturn,
    /// [`AppAction::KeyboardDelete`].
    KeyboardDelete,
    /// [`AppAction::Snapshot`].
    Snapshot,
    /// [`DeviceCommand::Button`].
    Button,
    /// [`DeviceCommand::Screenshot`].
    Screenshot,
    /// [`DeviceCommand::Status`].
    Status,
    /// [`DeviceCommand::CommandStatus`].
    CommandStatus,
    /// [`DeviceCommand::Shutdown`].
    Shutdown,
}

impl CommandKind {
    /// Every kind.
    pub const ALL: [Self; 13] = [
        Self::Viewport,
        Self::Tap,
        Self::LongPress,
        Self::Drag,
        Self::Type,
        Self::KeyboardReturn,
        Self::KeyboardDelete,
        Self::Snapshot,
        Self::Button,
        Self::Screenshot,
        Self::Status,
        Self::CommandStatus,
        Self::Shutdown,
    ];

    /// True if it changes the device by intent, so that it may be sent once
    /// only and needs a durable record before its first byte.
    pub fn is_mutation(self) -> bool {
        match self {
            Self::Tap
            | Self::LongPress
            | Self::Drag
            | Self::Type
            | Self::KeyboardReturn
            | Self::KeyboardDelete
            | Self::Button
            | Self::Shutdown => true,
            Self::Viewport
            | Self::Snapshot
            | Self::Screenshot
            | Self::Status
            | Self::CommandStatus => false,
        }
    }

    /// True if the runner answers it outside its serial queue and does not
    /// journal it, so that it need not wait for the device's turn.
    pub fn bypasses_queue(self) -> bool {
        matches!(self, Self::Status | Self::CommandStatus)
    }

    /// True if the runner keeps its reply for the journal, size permitting.
    pub fn retains_response(self) -> bool {
        !matches!(self, Self::Snapshot | Self::Screenshot)
    }

    /// Which budget it runs under.
    pub fn class(self) -> CommandClass {
        match self {
            Self::Type => CommandClass::Type,
            Self::Tap | Self::LongPress | Self::Drag => CommandClass::Gesture,
            Self::Snapshot => CommandClass::Snapshot,
            Self::Viewport
            | Self::KeyboardReturn
            | Self::KeyboardDelete
            | Self::Button
            | Self::Screenshot
            | Self::Status
            | Self::CommandStatus
            | Self::Shutdown => CommandClass::Other,
        }
    }

    /// Its name: the wire's, and `commandStatus`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Viewport => "viewport",
            Self::Tap => "tap",
            Self::LongPress => "longPress",
            Self::Drag => "drag",
            Self::Type => "type",
            Self::KeyboardReturn => "keyboardReturn",
            Self::KeyboardDelete => "keyboardDelete",
            Self::Snapshot => "snapshot",
            Self::Button => "button",
            Self::Screenshot => "screenshot",
            Self::Status => "status",
            Self::CommandStatus => "commandStatus",
            Self::Shutdown => "shutdown",
        }
    }
}

impl fmt::Display for CommandKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl<P> Command<P> {
    /// Which command it is.
    pub fn kind(&self) -> CommandKind {
        match self {
            Self::App(AppCommand { action, .. }) => match action {
                AppAction::Viewport => CommandKind::Viewport,
                AppAction::Tap { .. } => CommandKind::Tap,
                AppAction::LongPress { .. } => CommandKind::LongPress,
                AppAction::Drag { .. } => CommandKind::Drag,
                AppAction::Type { .. } => CommandKind::Type,
                AppAction::KeyboardReturn => CommandKind::KeyboardReturn,
                AppAction::KeyboardDelete => CommandKind::KeyboardDelete,
                AppAction::Snapshot => CommandKind::Snapshot,
            },
            Self::Device(DeviceCommand::Status) => CommandKind::Status,
            Self::Device(DeviceCommand::CommandStatus { .. }) => CommandKind::CommandStatus,
            Self::Device(DeviceCommand::Button { .. }) => CommandKind::Button,
            Self::Device(DeviceCommand::Screenshot) => CommandKind::Screenshot,
            Self::Device(DeviceCommand::Shutdown) => CommandKind::Shutdown,
        }
    }

    /// See [`CommandKind::is_mutation`].
    pub fn is_mutation(&self) -> bool {
        self.kind().is_mutation()
    }

    /// The app that it names.
    pub fn bundle_id(&self) -> Option<&BundleId> {
        match self {
            Self::App(AppCommand { bundle_id, .. }) => Some(bundle_id),
            Self::Device(_) => None,
        }
    }

    /// `text` without what this command types, for errors and records that
    /// may echo it.
    pub fn redact(&self, text: String) -> String {
        match self {
            Self::App(AppCommand {
                action: AppAction::Type { text: typed },
                ..
            }) if text.contains(typed.expose()) => text.replace(typed.expose(), "[redacted]"),
            Self::App(_) | Self::Device(_) => text,
        }
    }
}

impl Command<Point> {
    /// The read that must come before this command in the same turn, because a
    /// point of it is relative.
    pub fn viewport_first(&self) -> Option<Command> {
        let relative = |point: &Point| matches!(point, Point::Normalized(_));
        let Self::App(AppCommand { bundle_id, action }) = self else {
            return None;
        };
        let needed = match action {
            AppAction::Tap { at, .. } | AppAction::LongPress { at, .. } => relative(at),
            AppAction::Drag { from, to, .. } => relative(from) || relative(to),
            AppAction::Viewport
            | AppAction::Type { .. }
            | AppAction::KeyboardReturn
            | AppAction::KeyboardDelete
            | AppAction::Snapshot => false,
        };
        needed.then(|| {
            Command::App(AppCommand {
                bundle_id: bundle_id.clone(),
                action: AppAction::Viewport,
            })
        })
    }

    /// The command with every point in the app's own points; `None` if one is
    /// relative and there is no viewport to relate it to.
    pub fn resolve(self, viewport: Option<&Viewport>) -> Option<Command> {
        let (bundle_id, action) = match self {
            Self::Device(command) => return Some(Command::Device(command)),
            Self::App(AppCommand { bundle_id, action }) => (bundle_id, action),
        };
        let action = match action {
            AppAction::Viewport => AppAction::Viewport,
            AppAction::Tap { at, taps } => AppAction::Tap {
                at: at.resolve(viewport)?,
                taps,
            },
            AppAction::LongPress { at, duration } => AppAction::LongPress {
                at: at.resolve(viewport)?,
                duration,
            },
            AppAction::Drag {
                from,
                to,
                duration,
                hold,
                settle,
            } => AppAction::Drag {
                from: from.resolve(viewport)?,
                to: to.resolve(viewport)?,
                duration,
                hold,
                settle,
            },
            AppAction::Type { text } => AppAction::Type { text },
            AppAction::KeyboardReturn => AppAction::KeyboardReturn,
            AppAction::KeyboardDelete => AppAction::KeyboardDelete,
            AppAction::Snapshot => AppAction::Snapshot,
        };
        Some(Command::App(AppCommand { bundle_id, action }))
    }
}
