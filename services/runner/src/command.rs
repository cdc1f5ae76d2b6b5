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

use crate::echo;
use crate::ids::{BundleId, CommandId};
use crate::kind::CommandKind;
use crate::point::{AppPoint, Point};
use crate::reply::Viewport;
use crate::words::closed_words;

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

closed_words! {
    /// A hardware button that the protocol can press.
    pub enum Button {
        /// Home.
        Home = "home",
        /// Volume up.
        VolumeUp = "volumeUp",
        /// Volume down.
        VolumeDown = "volumeDown",
        /// The Action button, which not every phone has.
        ActionButton = "actionButton",
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

    /// What of `text` may be passed on, if this command types: a runner may quote
    /// what was typed in anything that it says of it. Where the whole of that
    /// stands in `text` it is cut out; if a part of it does, a phrase with its
    /// length stands for all of `text`.
    pub fn redact(&self, text: String) -> String {
        match self {
            Self::App(AppCommand {
                action: AppAction::Type { text: typed },
                ..
            }) => echo::redact(&typed.0, text),
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
    /// relative and there is no usable viewport to relate it to.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use std::num::NonZeroU32;
    /// use fleetgate_runner::{AppAction, AppCommand, Command, Point, UnitPoint, Viewport};
    ///
    /// let middle = UnitPoint::new(0.5, 0.5).ok_or("not finite")?;
    /// let tap = Command::App(AppCommand {
    ///     bundle_id: "com.apple.Preferences".parse()?,
    ///     action: AppAction::Tap { at: Point::Normalized(middle), taps: NonZeroU32::MIN },
    /// });
    /// assert!(tap.viewport_first().is_some());
    ///
    /// let viewport = Viewport { x: 0.0, y: 0.0, width: 393.0, height: 852.0 };
    /// let resolved = tap.resolve(Some(&viewport)).ok_or("no viewport")?;
    /// assert_eq!(resolved.recorded()["x"], 196.5);
    /// # Ok(())
    /// # }
    /// ```
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
