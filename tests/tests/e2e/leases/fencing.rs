//! Who is kept out, and how that is told.

use std::time::Duration;

use fleetgate_proto::v1 as pb;
use fleetgate_proto::v1::{LeaseChange, LeaseState, RevokeMode};
use fleetgate_runner::CommandKind;
use fleetgate_tests::facts::{clean, effects};
use fleetgate_tests::leasing::{any, by, seconds, span, these};
use fleetgate_tests::plain;
use tonic::Code;

use super::{
    KeptOut, Stage, assert_refused, assert_sent_by, assert_untouched, in_hand, order, slow_tap,
};

/// What moves the screen, or may.
fn driving() -> impl Iterator<Item = CommandKind> {
    plain::queued().filter(|kind| kind.is_mutation() || *kind == CommandKind::Viewport)
}

#[tokio::test(flavor = "multi_thread")]
async fn on_a_leased_phone_only_its_holder_drives_and_others_look() {
    let stage = Stage::plain(1).await;
    let (anna, berta, udid) = (stage.anna(), stage.berta(), stage.rig.udid(0));
    let lease = anna.take(any(1)).await;
    for kind in driving() {
        let other = KeptOut {
            who: &berta,
            device: &udid,
            kind,
            lease: None,
            code: Code::PermissionDenied,
            reason: "LEASE_HELD_BY_OTHER",
        };
        let refusal = other.assert(&stage, &format!("other-{kind}")).await;
        assert_eq!(refusal.meta("lease_owner"), anna.principal());
        let until: prost_types::Timestamp = refusal.meta("until").parse().unwrap();
        assert!(until.seconds > 0, "{refusal:?}");
        assert!(refusal.message.contains("token:anna"), "{refusal:?}");
    }
    // Its holder is to say by which lease, too.
    let forgetful = KeptOut {
        who: &anna,
        device: &udid,
        kind: CommandKind::Tap,
        lease: None,
        code: Code::FailedPrecondition,
        reason: "LEASE_REQUIRED",
    };
    let refusal = forgetful.assert(&stage, "forgetful").await;
    let (id, epoch) = (refusal.meta("lease"), refusal.meta("lease_epoch"));
    assert_eq!((id, epoch), (&*lease.id, &*lease.epoch.to_string()));
    for who in [&berta, &stage.guest()] {
        for kind in [
            CommandKind::Snapshot,
            CommandKind::Screenshot,
            CommandKind::Status,
        ] {
            let id = format!("{}-{kind}", who.principal());
            who.send(&udid, kind, &id, None).await.unwrap();
        }
    }
    // A look at the viewport may bring an app to the front.
    let looks = stage.guest().send(&udid, CommandKind::Viewport, "g", None);
    assert_refused(looks.await, Code::PermissionDenied, "ROLE_TOO_LOW");
    assert_eq!(stage.rig.phone(0).effects().len(), 0);
    for kind in [CommandKind::Tap, CommandKind::Viewport, CommandKind::Button] {
        let id = format!("holder-{kind}");
        anna.send(&udid, kind, &id, by(&lease)).await.unwrap();
        assert_sent_by(&stage.rig.find(&id).await.unwrap(), &anna, Some(&lease));
    }
    assert_eq!(order(&stage.rig.phone(0)), ["holder-tap", "holder-button"]);
    // Another member of the crew is no holder, even with the lease in hand.
    let borrowed = KeptOut {
        who: &stage.boss(),
        device: &udid,
        kind: CommandKind::Tap,
        lease: by(&lease),
        code: Code::PermissionDenied,
        reason: "LEASE_NOT_OWNER",
    };
    borrowed.assert(&stage, "borrowed").await;
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_names_the_lease_the_grant_and_the_phone_or_is_kept_out() {
    let stage = Stage::plain(3).await;
    let (anna, berta) = (stage.anna(), stage.berta());
    let udid = |n| stage.rig.udid(n);
    let old = anna.take(these(&[udid(0)])).await;
    anna.release(&old.id).await.unwrap();
    let own = anna.take(these(&[udid(0)])).await;
    let elsewhere = anna.take(these(&[udid(1)])).await;
    let bertas = berta.take(these(&[udid(2)])).await;
    let waits = anna.queue(these(&[udid(2)])).await;
    let lease = |id: &str, epoch| {
        Some(pb::LeaseRef {
            id: id.to_owned(),
            epoch,
        })
    };
    let (denied, failed) = (Code::PermissionDenied, Code::FailedPrecondition);
    for (n, (at, lease, code, reason)) in [
        (
            0,
            lease(&own.id, own.epoch - 1),
            denied,
            "LEASE_EPOCH_STALE",
        ),
        (0, lease(&own.id, old.epoch), denied, "LEASE_EPOCH_STALE"),
        (
            0,
            lease(&own.id, elsewhere.epoch),
            denied,
            "LEASE_EPOCH_STALE",
        ),
        (0, lease(&own.id, 0), denied, "LEASE_EPOCH_STALE"),
        (0, lease(&old.id, old.epoch), denied, "LEASE_RELEASED"),
        (0, lease(&old.id, own.epoch), denied, "LEASE_RELEASED"),
        (
            0,
            lease(&bertas.id, bertas.epoch),
            denied,
            "LEASE_NOT_OWNER",
        ),
        (
            2,
            lease(&bertas.id, bertas.epoch),
            denied,
            "LEASE_NOT_OWNER",
        ),
        (
            0,
            lease(&elsewhere.id, elsewhere.epoch),
            denied,
            "LEASE_OTHER_DEVICE",
        ),
        (2, lease(&own.id, own.epoch), denied, "LEASE_OTHER_DEVICE"),
        (2, lease(&waits.id, 0), failed, "LEASE_NOT_ACTIVE"),
        (
            0,
            lease("nobody-knows-it", 1),
            Code::NotFound,
            "LEASE_NOT_FOUND",
        ),
    ]
    .into_iter()
    .enumerate()
    {
        let kept_out = KeptOut {
            who: &anna,
            device: &udid(at),
            kind: CommandKind::Tap,
            lease,
            code,
            reason,
        };
        kept_out.assert(&stage, &format!("kept-out-{n}")).await;
    }
    // What a read says of its lease is to be true as well, since it goes on
    // record.
    let not_yet = lease(&own.id, own.epoch + 1);
    let read = KeptOut {
        who: &anna,
        device: &udid(0),
        kind: CommandKind::Snapshot,
        lease: not_yet,
        code: denied,
        reason: "LEASE_EPOCH_STALE",
    };
    read.assert(&stage, "read").await;
    anna.tap(&udid(0), "own", by(&own)).await.unwrap();
    assert_eq!(order(&stage.rig.phone(0)), ["own"]);
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lease_that_has_ended_is_good_for_nothing_however_it_ended() {
    let stage = Stage::plain(1).await;
    let (anna, udid) = (stage.anna(), stage.rig.udid(0));
    let short = span(Duration::from_secs(1));
    let by_ttl = pb::CreateLeaseRequest {
        ttl: short,
        ..any(1)
    };
    let by_max = pb::CreateLeaseRequest {
        max_duration: short,
        ..any(1)
    };
    let now = pb::CreateLeaseRequest {
        queue_timeout: seconds(0),
        ..any(1)
    };
    let mut ended = Vec::new();
    for (wish, state, reason) in [
        (by_ttl, LeaseState::Expired, "LEASE_EXPIRED"),
        (by_max, LeaseState::Expired, "LEASE_EXPIRED"),
        (any(1), LeaseState::Released, "LEASE_RELEASED"),
        (now, LeaseState::Revoked, "LEASE_REVOKED"),
    ] {
        let lease = anna.take(wish).await;
        if state == LeaseState::Released {
            anna.release(&lease.id).await.unwrap();
        } else if state == LeaseState::Revoked {
            let revoked = stage.boss().revoke(&lease.id, RevokeMode::Drain).await;
            revoked.unwrap();
        }
        let lease = anna.until(&lease.id, state).await;
        ended.push((lease, reason));
    }
    let stage = stage.restart().await;
    let anna = stage.anna();
    for (n, (lease, reason)) in ended.iter().enumerate() {
        let late = KeptOut {
            who: &anna,
            device: &udid,
            kind: CommandKind::Tap,
            lease: by(lease),
            code: Code::PermissionDenied,
            reason,
        };
        late.assert(&stage, &format!("late-{n}")).await;
    }
    // The phone is free: without a lease it can be driven.
    anna.tap(&udid, "implicit", None).await.unwrap();
    assert_sent_by(&stage.rig.find("implicit").await.unwrap(), &anna, None);
    assert_eq!(order(&stage.rig.phone(0)), ["implicit"]);
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_without_a_lease_holds_a_grant_back_until_it_has_ended() {
    let stage = Stage::plain(1).await;
    let (anna, berta) = (stage.anna(), stage.berta());
    let (phone, udid) = (stage.rig.phone(0), stage.rig.udid(0));
    slow_tap(&phone, Duration::from_secs(2));
    let implicit = berta.tapping(&udid, "implicit", None);
    in_hand(&phone).await;
    let behind = berta.tapping(&udid, "behind", None);
    super::queued(&berta, &udid, 1).await;
    let waits = anna.queue(any(1)).await;
    let mut watch = anna.watch(&waits.id).await;
    let why = anna.explain(&waits.id).await;
    assert_eq!(why.summary, "1 matches, 1 wanted: 1 kept for it and busy");
    // Nobody else is let in from now on.
    let late = KeptOut {
        who: &berta,
        device: &udid,
        kind: CommandKind::Tap,
        lease: None,
        code: Code::PermissionDenied,
        reason: "LEASE_HELD_BY_OTHER",
    };
    late.assert(&stage, "late").await;
    assert_eq!(phone.report().in_flight, 1);
    let granted = watch.until(LeaseChange::Granted).await.lease;
    let then = phone.report();
    assert_eq!(
        (then.in_flight, then.effects_total),
        (0, 2),
        "what was let in has ended"
    );
    implicit.told().await.unwrap();
    behind.told().await.unwrap();
    anna.tap(&udid, "holder", by(&granted)).await.unwrap();
    assert_eq!(order(&phone), ["implicit", "behind", "holder"]);
    assert_untouched(&phone, "late");
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_is_asked_for_again_is_answered_whoever_has_the_phone_by_then() {
    let stage = Stage::plain(1).await;
    let (anna, berta, udid) = (stage.anna(), stage.berta(), stage.rig.udid(0));
    let lease = anna.take(any(1)).await;
    let first = anna.tap(&udid, "tap", by(&lease)).await.unwrap();
    clean(Some(first.clone()), "tap");
    anna.release(&lease.id).await.unwrap();
    berta.take(any(1)).await;
    let stage = stage.restart().await;
    for lease in [by(&lease), None] {
        let again = stage.anna().tap(&udid, "tap", lease).await.unwrap();
        let told = (again.replayed, again.fate, again.attempts);
        assert_eq!(told, (true, first.fate, 1), "{again:?}");
    }
    assert_eq!(effects(&stage.rig.phone(0), "tap").len(), 1);
    let other = KeptOut {
        who: &stage.anna(),
        device: &udid,
        kind: CommandKind::Tap,
        lease: by(&lease),
        code: Code::PermissionDenied,
        reason: "LEASE_RELEASED",
    };
    other.assert(&stage, "another").await;
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lease_that_was_never_granted_is_good_for_nothing_either() {
    let stage = Stage::plain(1).await;
    let (anna, berta, udid) = (stage.anna(), stage.berta(), stage.rig.udid(0));
    let held = berta.take(any(1)).await;
    let cancelled = anna.queue(any(1)).await;
    anna.release(&cancelled.id).await.unwrap();
    let revoked = anna.queue(any(1)).await;
    let told = stage.boss().revoke(&revoked.id, RevokeMode::Drain).await;
    told.unwrap();
    let now = pb::CreateLeaseRequest {
        queue_timeout: seconds(0),
        ..any(1)
    };
    let overdue = anna.ask(now).await.unwrap();
    let impossible = anna.ask(any(2)).await.unwrap();
    berta.release(&held.id).await.unwrap();
    let (denied, failed) = (Code::PermissionDenied, Code::FailedPrecondition);
    for (n, (lease, code, reason)) in [
        (&cancelled, denied, "LEASE_RELEASED"),
        (&revoked, denied, "LEASE_REVOKED"),
        (&overdue, denied, "LEASE_EXPIRED"),
        (&impossible, failed, "LEASE_NOT_ACTIVE"),
    ]
    .into_iter()
    .enumerate()
    {
        let never = KeptOut {
            who: &anna,
            device: &udid,
            kind: CommandKind::Tap,
            lease: by(lease),
            code,
            reason,
        };
        never.assert(&stage, &format!("never-{n}")).await;
    }
    assert_eq!(stage.rig.phone(0).effects().len(), 0);
    stage.stop().await;
}
