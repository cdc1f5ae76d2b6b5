//! What each command does on the phone, and what can go wrong meanwhile.
//!
//! A command for an app first finds the app in front or brings it there; then
//! whatever fault waits for it strikes; then it acts on the screen, in the time
//! that it takes on a phone; that part is in [`act`].
//!
//! Invariant: a failure of the command itself, and every fault that precedes
//! its effect, leaves the screen as it was but for the app in front.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use fleetgate_runner::{
    AppAction, AppCommand, BundleId, Command, CommandId, CommandKind, Envelope, Reply, RunnerCode,
    RunnerError,
};

use super::Runner;
use crate::fault::{Injection, Stage};
use crate::launch::Ending;
use crate::phone::core::PhoneCore;
use crate::ui::AppState;

mod act;

/// Until the first frame of an app that was brought to the front.
const FIRST_FRAME: Duration = Duration::from_millis(250);
/// How much longer than its budget a command is stuck in a locked phone.
const GIVING_UP: Duration = Duration::from_secs(1);
/// How long an app may take to come to the front.
const ACTIVATION: Duration = Duration::from_secs(15);

/// One command's execution.
#[derive(Debug)]
pub(super) struct Execution {
    pub(super) phone: Arc<PhoneCore>,
    pub(super) runner: Arc<Runner>,
    pub(super) id: Option<CommandId>,
    pub(super) reactivated: Arc<AtomicBool>,
}

impl Execution {
    /// Executes the command. Never returns if a fault says so or the runner is
    /// killed meanwhile.
    pub(super) async fn run(&self, command: &Command) -> Envelope {
        let kind = command.kind();
        let before = self.counters();
        let mut result = self.perform(command).await;
        let after = self.counters();
        let mut warning = None;
        if kind.is_mutation() && result.is_ok() {
            if after.recorded > before.recorded {
                let message = format!("XCTest recorded a failure during {kind}");
                result = Err(error(RunnerCode::XctestRecordedFailure, message));
            } else if after.suppressed > before.suppressed {
                warning = Some(format!(
                    "{} accessibility issue(s) were muted during {kind}: look at the screen again",
                    after.suppressed - before.suppressed
                ));
            }
        }
        let reactivated = self.reactivated.load(Ordering::Acquire);
        Envelope {
            reactivated,
            warning,
            result,
        }
    }

    async fn perform(&self, command: &Command) -> Result<Reply, RunnerError> {
        let kind = command.kind();
        let fault = self.phone.take_fault(Stage::Execution, Some(kind));
        if let Command::App(AppCommand { bundle_id, action }) = command {
            let fails = matches!(fault, Some(Injection::ActivationFails));
            self.bring_to_front(bundle_id, action, kind, fails).await?;
        }
        self.strike_before(fault.as_ref(), command).await?;
        let reply = match command {
            Command::App(AppCommand { bundle_id, action }) => {
                self.in_app(bundle_id, action, fault.as_ref()).await?
            }
            Command::Device(command) => self.on_device(command).await?,
        };
        let reply = match (reply, &fault) {
            (Reply::Done(message), Some(Injection::LongMessage { bytes })) => {
                let padding = ".".repeat(bytes.saturating_sub(message.len()));
                Reply::Done(message + &padding)
            }
            (reply, Some(_) | None) => reply,
        };
        self.strike_after(fault).await?;
        Ok(reply)
    }

    /// Makes sure that the app is in front, as far as the command may.
    async fn bring_to_front(
        &self,
        bundle: &BundleId,
        action: &AppAction,
        kind: CommandKind,
        fails: bool,
    ) -> Result<(), RunnerError> {
        let (app, locked, stalls) = self.phone.look(|state| {
            let app = state.screen.app_state(bundle);
            (app, state.locked, state.stalls_when_locked)
        });
        if locked {
            if stalls {
                let budget = self.phone.clock.budgets().budget(kind.class()).runner;
                tokio::time::sleep(budget).await;
                self.phone.clock.sleep(GIVING_UP).await;
            }
            let message = format!("{bundle} cannot be reached");
            let hint = Some("unlock the phone".to_owned());
            return Err(RunnerError {
                hint,
                ..error(RunnerCode::AppNotAvailable, message)
            });
        }
        match app {
            AppState::Foreground => Ok(()),
            AppState::NotRunning => {
                let message = format!("{bundle} is not running");
                let hint = Some("launch the app first".to_owned());
                Err(RunnerError {
                    hint,
                    ..error(RunnerCode::AppNotAvailable, message)
                })
            }
            AppState::Background if matches!(action, AppAction::Snapshot) => {
                let message = format!("{bundle} is in the background");
                Err(error(RunnerCode::AppBackgrounded, message))
            }
            AppState::Background if fails => {
                self.phone.clock.sleep(ACTIVATION).await;
                let message = format!("{bundle} did not come to the front");
                Err(error(RunnerCode::AppNotAvailable, message))
            }
            AppState::Background => {
                self.phone.change(|state| {
                    state.screen.set_app_state(bundle, AppState::Foreground);
                    state.refronts += 1;
                });
                self.reactivated.store(true, Ordering::Release);
                self.phone.clock.sleep(FIRST_FRAME).await;
                Ok(())
            }
        }
    }

    /// The part of a fault that comes before the command acts.
    async fn strike_before(
        &self,
        fault: Option<&Injection>,
        command: &Command,
    ) -> Result<(), RunnerError> {
        match fault {
            Some(Injection::Slow { by }) => self.phone.clock.sleep(*by).await,
            Some(Injection::NeverEnds) => std::future::pending().await,
            Some(Injection::Error {
                code,
                message,
                hint,
                after_effect: false,
            }) => {
                let (code, message, hint) = (code.clone(), message.clone(), hint.clone());
                return Err(self.verdict(RunnerError {
                    code,
                    message,
                    hint,
                }));
            }
            Some(Injection::EchoText) => {
                if let Command::App(AppCommand {
                    action: AppAction::Type { text },
                    ..
                }) = command
                {
                    let message = format!("could not type \"{}\"", text.expose());
                    return Err(error(RunnerCode::CommandFailed, message));
                }
            }
            Some(Injection::Killed {
                after_effect: false,
                restart_on,
            }) => {
                self.die(*restart_on).await;
            }
            Some(_) | None => {}
        }
        Ok(())
    }

    /// The part of a fault that comes after the command has acted.
    async fn strike_after(&self, fault: Option<Injection>) -> Result<(), RunnerError> {
        match fault {
            Some(Injection::RecordedFailure) => self.runner.book().recorded += 1,
            Some(Injection::SuppressedIssue) => self.runner.book().suppressed += 1,
            Some(Injection::Error {
                code,
                message,
                hint,
                after_effect: true,
            }) => {
                return Err(self.verdict(RunnerError {
                    code,
                    message,
                    hint,
                }));
            }
            Some(Injection::Killed {
                after_effect: true,
                restart_on,
            }) => {
                self.die(restart_on).await;
            }
            Some(_) | None => {}
        }
        Ok(())
    }

    /// A scripted verdict. One that speaks of a recorded failure counts one.
    fn verdict(&self, error: RunnerError) -> RunnerError {
        if error.code == RunnerCode::XctestRecordedFailure {
            self.runner.book().recorded += 1;
        }
        error
    }

    /// Ends the runner in the middle of the command.
    async fn die(&self, restart_on: Option<u16>) {
        match restart_on {
            Some(port) => self.phone.start_runner(port, Duration::ZERO),
            None => self.phone.end_runner(&self.runner, Ending::Killed),
        }
        std::future::pending::<()>().await;
    }

    fn counters(&self) -> Counters {
        let book = self.runner.book();
        Counters {
            suppressed: book.suppressed,
            recorded: book.recorded,
        }
    }
}

#[derive(Debug, Clone, Copy)]
struct Counters {
    suppressed: u64,
    recorded: u64,
}

fn error(code: RunnerCode, message: String) -> RunnerError {
    RunnerError {
        code,
        message,
        hint: None,
    }
}
