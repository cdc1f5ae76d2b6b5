//! What a keeper tells of its phone: to whoever asks, to watchers, and to the
//! ledger.

use std::time::SystemTime;

use fleetgate_proto::v1 as pb;
use tokio::time::Instant;
use tracing::info;

use super::Keeper;
use crate::convert::timestamp;
use crate::fleet::life::{Drift, Flaw, Move, Out, Reason};

impl Keeper {
    /// Tells what a step has changed.
    pub(super) fn tell(&mut self, out: Out) {
        let Out {
            acts: _,
            moves,
            alarm,
            flaw,
            is_up,
        } = out;
        let device = &self.phone.udid;
        if let Some((flaw, message)) = flaw {
            // Where nothing was run, the log is that of the launch before.
            let launcher = self.ground.launcher.as_ref();
            let launcher = launcher.filter(|_| flaw != Flaw::NotStarted);
            self.face.runner.last_failure = Some(pb::LaunchFailure {
                reason: flaw.as_str().to_owned(),
                message,
                time: Some(timestamp(SystemTime::now())),
                log_tail: launcher.map_or_else(Vec::new, |launcher| launcher.log_tail(device)),
            });
        }
        if is_up {
            self.face.runner.last_failure = None;
        }
        let alarm = alarm.and_then(|alarm| match alarm {
            Drift::Raised(message) => {
                let raised = pb::Alarm {
                    code: Reason::RunnerDrift.to_string(),
                    message,
                    time: Some(timestamp(SystemTime::now())),
                };
                self.face.alarm = Some(raised.clone());
                Some((raised, false))
            }
            Drift::Ended => self.face.alarm.take().map(|ended| (ended, true)),
        });
        self.draw();
        let last = moves.len();
        for (nth, moved) in moves.into_iter().enumerate() {
            self.tell_move(moved, nth + 1 == last);
        }
        self.tell_change();
        if let Some((alarm, ended)) = alarm {
            self.ground.chronicle.alarm(&self.phone.udid, alarm, ended);
        }
    }

    /// Takes over what the life says but for its state.
    fn draw(&mut self) {
        let runner = &mut self.face.runner;
        runner.pid = self.child.pid();
        runner.failures = self.life.failures();
        let next = self.life.next_launch();
        if next.is_none() != runner.next_launch.is_none() {
            runner.next_launch = next.map(|next| SystemTime::now() + (next - Instant::now()));
        }
        self.face.port = self.life.port();
    }

    fn tell_move(&mut self, moved: Move, is_last: bool) {
        let Move {
            from,
            to,
            reason,
            detail,
        } = moved;
        let now = SystemTime::now();
        info!(?from, ?to, %reason, detail, "device transition");
        if from != to {
            (self.face.state, self.face.since) = (to, now);
            (self.face.reason, self.face.detail) = (reason, detail.clone());
        }
        if is_last {
            let (_, reason, detail) = self.life.state();
            (self.face.reason, self.face.detail) = (reason, detail.map(str::to_owned));
        }
        self.phone.tell(&self.face);
        let transition = pb::DeviceTransition {
            seq: 0,
            time: Some(timestamp(now)),
            device: self.phone.udid.to_string(),
            from: pb::DeviceState::from(from).into(),
            to: pb::DeviceState::from(to).into(),
            reason: reason.to_string(),
            detail,
        };
        let device = &self.phone.udid;
        let message = || self.ground.message(&self.phone);
        self.ground.chronicle.moved(device, message, transition);
    }

    /// Tells of what is not told yet.
    pub(super) fn tell_change(&mut self) {
        if self.phone.face() != self.face {
            self.phone.tell(&self.face);
            let message = || self.ground.message(&self.phone);
            self.ground.chronicle.changed(message);
        }
    }
}
