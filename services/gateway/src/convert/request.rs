//! Requests for commands: each message becomes a `Command<Point>`.

use std::num::NonZeroU32;

use fleetgate_proto::v1 as pb;
use fleetgate_runner::{AppAction, AppCommand, Command, CommandId, DeviceCommand, Point};

use super::fields;
use super::violations::{Invalid, Violations};
use crate::leases::Named;

/// A request whose every field is right.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Asked {
    /// The device as the caller named it.
    pub(crate) device: String,
    /// The command's id: the caller's, or a new one.
    pub(crate) command_id: CommandId,
    /// True if the id is the caller's, who may have used it before.
    pub(crate) named: bool,
    /// What to do.
    pub(crate) command: Command<Point>,
    /// The lease under which it is to be done, if one is named.
    pub(crate) lease: Option<Named>,
}

/// What all requests for commands have in common.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Head<'a> {
    device: &'a str,
    command_id: Option<&'a str>,
    lease: Option<&'a pb::LeaseRef>,
}

/// A message that asks for a command.
pub(crate) trait CommandRequest {
    /// The fields that all requests share.
    fn head(&self) -> Head<'_>;

    /// The command; `None` if a violation was noted.
    fn command(self, violations: &mut Violations) -> Option<Command<Point>>;
}

/// Checks a request in all its fields.
pub(crate) fn ask<Q: CommandRequest>(request: Q) -> Result<Asked, Invalid> {
    let mut violations = Violations::default();
    let Head {
        device,
        command_id,
        lease,
    } = request.head();
    let named = (Some(device.to_owned()), command_id.map(str::to_owned));
    let lease = lease.map(|lease| named_lease(lease, &mut violations));
    let device = fields::device_name(device, &mut violations);
    let command_id = fields::command_id(command_id, &mut violations);
    let command = request.command(&mut violations);
    let asked = match (device, command_id, command) {
        (Some(device), Some(command_id), Some(command)) => Some(Asked {
            device,
            command_id,
            named: named.1.is_some(),
            command,
            lease: lease.flatten(),
        }),
        (_, _, _) => None,
    };
    let (device, command_id) = named;
    violations.finish(asked).map_err(|violations| Invalid {
        violations,
        device,
        command_id,
    })
}

/// The lease that a caller names. An epoch that no grant has is told from the
/// others when it is compared.
fn named_lease(lease: &pb::LeaseRef, violations: &mut Violations) -> Option<Named> {
    let id = violations.take("lease.id", lease.id.parse())?;
    let epoch = lease.epoch.try_into().ok();
    Some(Named { id, epoch })
}

/// The head of a message with `device`, `command_id` and `lease`.
macro_rules! head {
    () => {
        fn head(&self) -> Head<'_> {
            Head {
                device: &self.device,
                command_id: self.command_id.as_deref(),
                lease: self.lease.as_ref(),
            }
        }
    };
}

fn app(
    bundle_id: &str,
    action: Option<AppAction<Point>>,
    violations: &mut Violations,
) -> Option<Command<Point>> {
    let bundle_id = fields::bundle_id(bundle_id, violations);
    Some(Command::App(AppCommand {
        bundle_id: bundle_id?,
        action: action?,
    }))
}

impl CommandRequest for pb::GetViewportRequest {
    head!();

    fn command(self, violations: &mut Violations) -> Option<Command<Point>> {
        app(&self.app_bundle_id, Some(AppAction::Viewport), violations)
    }
}

impl CommandRequest for pb::TapRequest {
    head!();

    fn command(self, violations: &mut Violations) -> Option<Command<Point>> {
        let at = fields::point("point", self.point, violations);
        let taps = NonZeroU32::new(self.number_of_taps.unwrap_or(1))
            .or_else(|| violations.refuse("number_of_taps", "must be at least 1"));
        let action = at.zip(taps).map(|(at, taps)| AppAction::Tap { at, taps });
        app(&self.app_bundle_id, action, violations)
    }
}

impl CommandRequest for pb::LongPressRequest {
    head!();

    fn command(self, violations: &mut Violations) -> Option<Command<Point>> {
        let at = fields::point("point", self.point, violations);
        let duration = fields::gesture_duration("duration", self.duration, violations);
        let action = at
            .zip(duration)
            .map(|(at, duration)| AppAction::LongPress { at, duration });
        app(&self.app_bundle_id, action, violations)
    }
}

impl CommandRequest for pb::DragRequest {
    head!();

    fn command(self, violations: &mut Violations) -> Option<Command<Point>> {
        let from = fields::point("from", self.from, violations);
        let to = fields::point("to", self.to, violations);
        let duration = fields::gesture_duration("duration", self.duration, violations);
        let hold = fields::gesture_duration("hold", self.hold, violations);
        let action = from
            .zip(to)
            .zip(duration.zip(hold))
            .map(|((from, to), (duration, hold))| AppAction::Drag {
                from,
                to,
                duration,
                hold,
                settle: self.settle,
            });
        app(&self.app_bundle_id, action, violations)
    }
}

impl CommandRequest for pb::TypeTextRequest {
    head!();

    fn command(self, violations: &mut Violations) -> Option<Command<Point>> {
        let text = fields::typed_text(self.text, violations);
        app(
            &self.app_bundle_id,
            text.map(|text| AppAction::Type { text }),
            violations,
        )
    }
}

impl CommandRequest for pb::PressKeyboardReturnRequest {
    head!();

    fn command(self, violations: &mut Violations) -> Option<Command<Point>> {
        app(
            &self.app_bundle_id,
            Some(AppAction::KeyboardReturn),
            violations,
        )
    }
}

impl CommandRequest for pb::PressKeyboardDeleteRequest {
    head!();

    fn command(self, violations: &mut Violations) -> Option<Command<Point>> {
        app(
            &self.app_bundle_id,
            Some(AppAction::KeyboardDelete),
            violations,
        )
    }
}

impl CommandRequest for pb::CaptureSnapshotRequest {
    head!();

    fn command(self, violations: &mut Violations) -> Option<Command<Point>> {
        app(&self.app_bundle_id, Some(AppAction::Snapshot), violations)
    }
}

impl CommandRequest for pb::PressButtonRequest {
    head!();

    fn command(self, violations: &mut Violations) -> Option<Command<Point>> {
        let button = fields::button(self.button, violations)?;
        Some(Command::Device(DeviceCommand::Button { button }))
    }
}

impl CommandRequest for pb::CaptureScreenshotRequest {
    head!();

    fn command(self, _violations: &mut Violations) -> Option<Command<Point>> {
        Some(Command::Device(DeviceCommand::Screenshot))
    }
}

impl CommandRequest for pb::ShutdownRunnerRequest {
    head!();

    fn command(self, _violations: &mut Violations) -> Option<Command<Point>> {
        Some(Command::Device(DeviceCommand::Shutdown))
    }
}

impl CommandRequest for pb::GetRunnerStatusRequest {
    fn head(&self) -> Head<'_> {
        Head {
            device: &self.device,
            command_id: None,
            lease: None,
        }
    }

    fn command(self, _violations: &mut Violations) -> Option<Command<Point>> {
        Some(Command::Device(DeviceCommand::Status))
    }
}

impl CommandRequest for pb::GetRunnerCommandStatusRequest {
    // The id in the message is the one to look up, not this command's own.
    fn head(&self) -> Head<'_> {
        Head {
            device: &self.device,
            command_id: None,
            lease: None,
        }
    }

    fn command(self, violations: &mut Violations) -> Option<Command<Point>> {
        let of = violations.take("command_id", self.command_id.parse())?;
        Some(Command::Device(DeviceCommand::CommandStatus { of }))
    }
}
