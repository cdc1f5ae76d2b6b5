//! What each command does to the screen, and how long it takes.
//!
//! Where a duration is not the protocol's but this simulation's (how long a tap
//! takes), it stands in a const here.
//!
//! Invariant: the screen is touched under the phone's lock, at one moment, and
//! noted as an effect at that same moment.

use std::convert::Infallible;
use std::time::Duration;

use bytes::Bytes;
use fleetgate_runner::{
    AppAction, AppPoint, BundleId, CommandKind, DeviceCommand, Reply, RunnerCode, RunnerError,
    Screenshot, TypedText, defaults,
};

use super::{Execution, error};
use crate::fault::Injection;
use crate::ui::{Hit, Screen};

/// One synthesized touch.
const TOUCH: Duration = Duration::from_millis(5);
/// From one tap of three or more to the next: an idle wait and a round trip.
const BETWEEN_TAPS: Duration = Duration::from_millis(300);
/// Typing one character.
const KEYSTROKE: Duration = Duration::from_millis(2);
/// Walking the accessibility tree.
const CAPTURE: Duration = Duration::from_millis(20);
/// Before a capture that threw is tried once more.
const CAPTURE_AGAIN: Duration = Duration::from_millis(400);
/// How long `type` and `keyboardDelete` wait for the keyboard.
const KEYBOARD: Duration = Duration::from_secs(3);
/// From one look at the keyboard to the next.
const KEYBOARD_PROBE: Duration = Duration::from_millis(250);

/// A drag that gives no duration.
const DRAG: Duration = Duration::from_millis(300);

impl Execution {
    pub(super) async fn in_app(
        &self,
        bundle: &BundleId,
        action: &AppAction,
        fault: Option<&Injection>,
    ) -> Result<Reply, RunnerError> {
        match action {
            AppAction::Viewport => Ok(Reply::Viewport(
                self.phone.look(|state| state.screen.viewport()),
            )),
            AppAction::Tap { at, taps } => self.tap(*at, taps.get()).await,
            AppAction::LongPress { at, duration } => {
                let held = defaults::long_press(*duration);
                self.phone.clock.sleep(held).await;
                self.touch(CommandKind::LongPress, |screen| {
                    saw("long press", *at, &screen.long_press(*at, held))
                });
                Ok(done("long-pressed"))
            }
            AppAction::Drag {
                from,
                to,
                duration,
                hold,
                settle,
            } => self.drag(*from, *to, *duration, *hold, *settle).await,
            AppAction::Type { text } => self.type_text(text).await,
            AppAction::KeyboardReturn => {
                self.phone.clock.sleep(TOUCH).await;
                self.keyboard(CommandKind::KeyboardReturn, |screen| {
                    screen.keyboard_return();
                    "pressed return".to_owned()
                })?;
                Ok(done("pressed return"))
            }
            AppAction::KeyboardDelete => {
                self.await_keyboard().await;
                self.keyboard(CommandKind::KeyboardDelete, |screen| {
                    screen.keyboard_delete();
                    "deleted a character".to_owned()
                })?;
                Ok(done("deleted"))
            }
            AppAction::Snapshot => self.snapshot(bundle, fault).await,
        }
    }

    pub(super) async fn on_device(&self, command: &DeviceCommand) -> Result<Reply, RunnerError> {
        match command {
            DeviceCommand::Button { button } => {
                self.phone
                    .act(CommandKind::Button, self.id.as_ref(), |screen| {
                        if screen.press(*button) {
                            Ok(format!("pressed {button}"))
                        } else {
                            let message = format!("this phone has no {button}");
                            Err(error(RunnerCode::UnsupportedOperation, message))
                        }
                    })?;
                Ok(Reply::Done(format!("pressed {button}")))
            }
            DeviceCommand::Screenshot => {
                let screen = self.phone.look(|state| state.screen.clone());
                // Drawing is real work: off the threads that serve the lab.
                let drawing = self.phone.tasks.spawn_blocking(move || screen.screenshot());
                let failed =
                    |cause| error(RunnerCode::CommandFailed, format!("no picture: {cause}"));
                let png = Bytes::from(drawing.await.map_err(failed)?);
                Ok(Reply::Screenshot(Screenshot { png }))
            }
            DeviceCommand::Shutdown => {
                self.touch(CommandKind::Shutdown, |_| "ended the runner".to_owned());
                Ok(done("shutting down"))
            }
            // Answered on the transport's queue; it cannot come here.
            DeviceCommand::Status | DeviceCommand::CommandStatus { .. } => Err(error(
                RunnerCode::InvalidRequest,
                "status is not executed".to_owned(),
            )),
        }
    }

    /// One tap, one double tap, or separate taps that land one by one.
    async fn tap(&self, at: AppPoint, taps: u32) -> Result<Reply, RunnerError> {
        self.phone.clock.sleep(TOUCH).await;
        let (first, rest) = if taps <= 2 { (taps, 0) } else { (1, taps - 1) };
        self.touch(CommandKind::Tap, |screen| {
            let name = if taps == 1 {
                "tap".to_owned()
            } else {
                format!("{taps} taps")
            };
            saw(&name, at, &screen.tap(at, first))
        });
        for _ in 0..rest {
            self.phone.clock.sleep(BETWEEN_TAPS).await;
            self.phone.change(|state| state.screen.tap(at, 1));
        }
        Ok(done("tapped"))
    }

    async fn drag(
        &self,
        from: AppPoint,
        to: AppPoint,
        duration: Option<Duration>,
        hold: Option<Duration>,
        settle: bool,
    ) -> Result<Reply, RunnerError> {
        let distance = (to.x - from.x).hypot(to.y - from.y);
        let velocity = defaults::drag_speed(distance, duration.unwrap_or(DRAG));
        let moving = Duration::try_from_secs_f64(distance / velocity).unwrap_or(Duration::MAX);
        let hold = defaults::drag_hold(hold);
        let rest = defaults::drag_rest(settle);
        let whole = hold.saturating_add(moving).saturating_add(rest);
        self.phone.clock.sleep(whole).await;
        self.touch(CommandKind::Drag, |screen| {
            saw("drag", from, &screen.drag(from, to, moving, hold, settle))
        });
        Ok(done("dragged"))
    }

    async fn type_text(&self, text: &TypedText) -> Result<Reply, RunnerError> {
        self.await_keyboard().await;
        let chars = u32::try_from(text.chars()).unwrap_or(u32::MAX);
        if self.phone.look(|state| state.screen.has_focus()) {
            self.phone
                .clock
                .sleep(KEYSTROKE.saturating_mul(chars))
                .await;
        }
        self.keyboard(CommandKind::Type, |screen| {
            screen.type_text(text.expose());
            format!("typed {chars} characters")
        })?;
        Ok(done("typed"))
    }

    async fn snapshot(
        &self,
        bundle: &BundleId,
        fault: Option<&Injection>,
    ) -> Result<Reply, RunnerError> {
        self.phone.clock.sleep(CAPTURE).await;
        let flaky = matches!(fault, Some(Injection::SnapshotFlaky));
        let broken = matches!(fault, Some(Injection::SnapshotFailed));
        if flaky || broken {
            self.phone.clock.sleep(CAPTURE_AGAIN + CAPTURE).await;
        }
        if broken {
            let message = "the accessibility tree could not be captured".to_owned();
            return Err(error(RunnerCode::SnapshotFailed, message));
        }
        Ok(Reply::Snapshot(
            self.phone.look(|state| state.screen.snapshot(bundle)),
        ))
    }

    /// Waits for the keyboard as long as a runner does. Whether it came, the
    /// focus probe tells.
    async fn await_keyboard(&self) {
        let mut waited = Duration::ZERO;
        while waited < KEYBOARD && !self.phone.look(|state| state.screen.has_focus()) {
            self.phone.clock.sleep(KEYBOARD_PROBE).await;
            waited += KEYBOARD_PROBE;
        }
    }

    /// Acts on the keyboard behind the focus probe, at one moment.
    fn keyboard(
        &self,
        kind: CommandKind,
        act: impl FnOnce(&mut Screen) -> String,
    ) -> Result<(), RunnerError> {
        self.phone.act(kind, self.id.as_ref(), |screen| {
            if !screen.has_focus() {
                let hint = Some("tap the text field first".to_owned());
                let message = "nothing has keyboard focus".to_owned();
                return Err(RunnerError {
                    hint,
                    ..error(RunnerCode::TextInputNotFocused, message)
                });
            }
            Ok(act(screen))
        })
    }

    /// Acts on the screen in a way that cannot fail.
    fn touch(&self, kind: CommandKind, act: impl FnOnce(&mut Screen) -> String) {
        let Ok(()) = self.phone.act(kind, self.id.as_ref(), |screen| {
            Ok::<_, Infallible>(act(screen))
        });
    }
}

fn done(message: &str) -> Reply {
    Reply::Done(message.to_owned())
}

/// A touch in words, for the log of effects.
fn saw(gesture: &str, at: AppPoint, hit: &Hit) -> String {
    let on = hit.label.as_deref().unwrap_or("nothing");
    format!(
        "{gesture} at ({:.1}, {:.1}) on {on}: {:?}",
        at.x, at.y, hit.change
    )
}
