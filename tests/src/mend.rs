//! How a phone is made whole after trouble.

use fleetgate_runner::RunnerState;
use fleetgate_simulator::scenario::DEFAULT_PORT;
use fleetgate_simulator::ui::AppState;
use fleetgate_simulator::{Phone, PhoneReport};

use crate::screen;

/// True if a runner that works is where the gateway looks for it.
pub fn is_fit(report: &PhoneReport) -> bool {
    report
        .runner
        .as_ref()
        .is_some_and(|runner| runner.port == DEFAULT_PORT && runner.state == RunnerState::Idle)
}

/// True if nothing runs on the phone, abandoned work included.
pub fn is_at_rest(report: &PhoneReport) -> bool {
    let runner = report.runner.as_ref();
    report.in_flight == 0 && runner.is_none_or(|runner| runner.state == RunnerState::Idle)
}

/// Takes away the faults that wait, plugs the phone in, unlocks it, opens the
/// app, and starts a runner unless a fit one is up.
pub fn heal(phone: &Phone) {
    phone.clear_faults();
    phone.attach();
    phone.set_locked(false);
    phone.set_app_state(&screen::app(), AppState::Foreground);
    if !is_fit(&phone.report()) {
        phone.restart_runner(DEFAULT_PORT);
    }
}
