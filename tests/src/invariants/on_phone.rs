//! What a phone says about commands: the deeds that words are held against.

use std::time::Duration;

use fleetgate_runner::{Budgets, CommandId, CommandKind, RunnerCode};
use fleetgate_simulator::{Arrival, Decline, ObservedEffect, PhoneReport};

/// What a phone saw and did under one command id.
#[derive(Debug, Clone, Default)]
pub struct OnPhone {
    /// What it did.
    pub effects: Vec<ObservedEffect>,
    /// The requests that runners read, questions about it aside.
    pub arrivals: Vec<Arrival>,
    /// Those that came too early: see [`overtaking`].
    pub overtaking: Vec<Arrival>,
    /// How often it was turned away without having run.
    pub declines: Vec<Decline>,
    /// How often the journal was asked about it.
    pub questions: usize,
}

impl OnPhone {
    /// What a report says of a command; [`OnPhone::overtaking`] aside, which
    /// takes a clock to know.
    pub fn of(report: &PhoneReport, command_id: &str) -> Self {
        let is = |id: &Option<CommandId>| id.as_ref().is_some_and(|id| id.as_str() == command_id);
        let (questions, arrivals): (Vec<_>, Vec<_>) = report
            .arrivals
            .iter()
            .filter(|arrival| is(&arrival.command_id))
            .cloned()
            .partition(|arrival| arrival.kind == CommandKind::CommandStatus);
        let effects = report.effects.iter();
        let declines = report.declines.iter();
        Self {
            effects: effects
                .filter(|effect| is(&effect.command_id))
                .cloned()
                .collect(),
            arrivals,
            overtaking: Vec::new(),
            declines: declines
                .filter(|decline| is(&decline.command_id))
                .cloned()
                .collect(),
            questions: questions.len(),
        }
    }

    /// The same on a phone with this clock.
    pub fn timed(report: &PhoneReport, command_id: &str, budgets: &Budgets) -> Self {
        let mine = |arrival: &Arrival| {
            let id = arrival.command_id.as_ref();
            id.is_some_and(|id| id.as_str() == command_id)
        };
        let mut overtaking = overtaking(report, budgets);
        overtaking.retain(mine);
        Self {
            overtaking,
            ..Self::of(report, command_id)
        }
    }

    pub(super) fn was_busy(&self) -> usize {
        let busy = |decline: &&Decline| decline.code == RunnerCode::RunnerBusy;
        self.declines.iter().filter(busy).count()
    }
}

/// How long after a request was sent a loaded machine may be with noting that it
/// came: the window runs from the one moment, and is looked at here from the
/// other.
const LATE: Duration = Duration::from_millis(250);

/// The mutations that came while the runner had another in hand whose window was
/// open still. Two limits: a lane may go on when the window has closed, and a
/// loaded machine may be late with the verdict until then; and reads are let past
/// a mutation whose fate is unknown, and wait in the runner, so that only what is
/// in hand beside all of them counts.
pub fn overtaking(report: &PhoneReport, budgets: &Budgets) -> Vec<Arrival> {
    let queued = |arrival: &&Arrival| !arrival.kind.bypasses_queue();
    let mut early = Vec::new();
    let (mut before, mut reads) = (None::<&Arrival>, 0);
    for this in report.arrivals.iter().filter(queued) {
        if !this.kind.is_mutation() {
            reads += 1;
            continue;
        }
        if let Some(before) = before {
            // Connecting takes a part of the window.
            let window = budgets.budget(before.kind.class()).window.mul_f64(0.9);
            let window = window.saturating_sub(LATE);
            let open = this.at.saturating_sub(before.at) < window;
            let in_hand = this.beside > before.beside + reads;
            if in_hand && open && this.command_id != before.command_id {
                early.push(this.clone());
            }
        }
        (before, reads) = (Some(this), 0);
    }
    early
}
