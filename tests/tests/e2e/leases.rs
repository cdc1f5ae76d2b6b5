//! Leases over the wire: who may drive which phone, who is next, and what
//! becomes of commands at the end of one.

use std::time::Duration;

use fleetgate_proto::v1 as pb;
use fleetgate_proto::v1::{CommandRecord, Effect, Fate, Lease, LeaseState};
use fleetgate_runner::{CommandId, CommandKind};
use fleetgate_simulator::{Fault, Injection, Phone, PhoneReport};
use fleetgate_tests::leasing::{self, BOSS, Caller, Cast, GUEST, Link, Records};
use fleetgate_tests::{Refusal, Rig, refused, soon};
use tonic::{Code, Status};

mod crowd;
mod ending;
mod fencing;
mod following;
mod granting;
mod keeping;
mod listing;
mod overrun;
mod policy;
mod repeating;
mod revoking;
mod storm;
mod waiting;

/// A rig with the cast before it.
#[derive(Debug)]
struct Stage {
    rig: Rig,
    cast: Cast,
}

impl Stage {
    /// So many phones, and nothing out of the ordinary.
    async fn plain(phones: u32) -> Self {
        Self::of(leasing::rig(phones).await)
    }

    fn of((rig, cast): (Rig, Cast)) -> Self {
        Self { rig, cast }
    }

    fn caller(&self, name: &str) -> Caller {
        self.cast.caller(name, self.rig.channel())
    }

    fn anna(&self) -> Caller {
        self.caller("anna")
    }

    fn berta(&self) -> Caller {
        self.caller("berta")
    }

    fn carla(&self) -> Caller {
        self.caller("carla")
    }

    fn boss(&self) -> Caller {
        self.caller(BOSS)
    }

    fn guest(&self) -> Caller {
        self.caller(GUEST)
    }

    /// Another gateway on the same ledger, once its phones are ready.
    async fn restart(self) -> Self {
        let Self { rig, cast } = self;
        let rig = rig.restart_gateway().await;
        leasing::ready(&rig).await;
        Self { rig, cast }
    }

    fn records(&self) -> Records<Link> {
        self.boss().records()
    }

    /// What was done to a lease: who did what.
    async fn done_to(&self, lease: &str) -> Vec<String> {
        self.records().done_to(lease).await
    }

    async fn stop(self) {
        self.rig.stop().await;
    }
}

/// How a command is kept out.
struct KeptOut<'a> {
    who: &'a Caller,
    device: &'a str,
    kind: CommandKind,
    lease: Option<pb::LeaseRef>,
    code: Code,
    reason: &'a str,
}

impl KeptOut<'_> {
    /// Asserts that it is, that its caller is told all about it, that nothing of
    /// it reaches the phone or is on record as a command, and that the denial is.
    async fn assert(&self, stage: &Stage, command_id: &str) -> Refusal {
        let Self {
            who,
            device,
            kind,
            lease,
            code,
            reason,
        } = self;
        let told = who.send(device, *kind, command_id, lease.clone()).await;
        let refusal = refused(told);
        let words = (refusal.code, refusal.reason.as_str());
        assert_eq!(words, (*code, *reason), "{refusal:?}");
        assert_eq!(refusal.meta("fate"), "NOT_SENT", "{refusal:?}");
        assert_eq!(refusal.meta("effect"), "NONE", "{refusal:?}");
        assert_eq!(refusal.meta("command_id"), command_id, "{refusal:?}");
        assert_eq!(refusal.retry_delay, None, "{refusal:?}");
        for phone in stage.rig.lab.phones() {
            assert_untouched(&phone, command_id);
        }
        assert_eq!(stage.rig.find(command_id).await, None);

        if let Some(named) = lease {
            assert_eq!(refusal.meta("lease"), named.id, "{refusal:?}");
        }
        let records = stage.records();
        let denied = records.denial(reason, |denied| {
            denied.who == who.principal()
                && denied.detail("device") == refusal.meta("device")
                && denied.detail("lease") == refusal.meta("lease")
        });
        let denied = denied.await;
        assert!(denied.target.starts_with("/fleetgate.v1."), "{denied:?}");
        refusal
    }
}

/// Asserts that nothing of a command reached a phone.
#[track_caller]
fn assert_untouched(phone: &Phone, command_id: &str) {
    let id: CommandId = command_id.parse().unwrap();
    let report = phone.report();
    assert_eq!(report.effects_of(&id), 0, "{command_id}");
    let mut arrivals = report.arrivals.iter();
    let arrived = arrivals.any(|arrival| arrival.command_id.as_ref() == Some(&id));
    assert!(!arrived, "{command_id} has arrived");
}

/// Asserts that a call about leases was refused so.
#[track_caller]
fn assert_refused<T: std::fmt::Debug>(
    told: Result<T, Status>,
    code: Code,
    reason: &str,
) -> Refusal {
    let refusal = refused(told);
    let words = (refusal.code, refusal.reason.as_str());
    assert_eq!(words, (code, reason), "{refusal:?}");
    assert_eq!(refusal.domain, "fleetgate", "{refusal:?}");
    refusal
}

/// The next tap on a phone takes so much longer.
fn slow_tap(phone: &Phone, by: Duration) {
    phone.fault(Fault::from(Injection::Slow { by }).on(CommandKind::Tap));
}

/// Waits until a phone has a command in hand.
async fn in_hand(phone: &Phone) {
    let busy = |report: &PhoneReport| report.in_flight == 1;
    soon("a command in hand", phone.wait_until(busy)).await;
}

/// Waits until so many commands wait for their turn.
async fn queued(who: &Caller, device: &str, count: u32) {
    soon(&format!("a queue of {count}"), async {
        while who.device(device).await.queued_commands != count {
            fleetgate_tests::pause().await;
        }
    })
    .await;
}

/// Asserts that a row says who sent the command, and by which lease.
#[track_caller]
fn assert_sent_by(row: &CommandRecord, who: &Caller, lease: Option<&Lease>) {
    assert_eq!(row.principal, Some(who.principal()), "{row:?}");
    assert_eq!(row.lease, lease.and_then(leasing::by), "{row:?}");
}

/// Asserts that a row says that a command was not sent, for this reason.
#[track_caller]
fn assert_not_sent(row: &CommandRecord, reason: &str) {
    let said = (row.fate(), row.effect(), row.reason.as_deref());
    assert_eq!(said, (Fate::NotSent, Effect::None, Some(reason)), "{row:?}");
}

/// Asserts that a lease has ended so.
#[track_caller]
fn assert_ended(lease: &Lease, state: LeaseState, reason: &str) {
    assert_eq!(lease.state(), state, "{lease:?}");
    assert_eq!(lease.end_reason.as_deref(), Some(reason), "{lease:?}");
    assert!(lease.end_time.is_some(), "{lease:?}");
    let open = (lease.expire_time, lease.remaining, lease.queue_position);
    assert_eq!(open, (None, None, None), "{lease:?}");
}

/// The ids of the commands that had an effect on a phone, in order.
fn order(phone: &Phone) -> Vec<String> {
    let effects = phone.effects().into_iter();
    let ids = effects.filter_map(|effect| effect.command_id);
    ids.map(|id| id.as_str().to_owned()).collect()
}
