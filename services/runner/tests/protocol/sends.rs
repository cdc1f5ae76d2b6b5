//! What the failures of an exchange prove, and the leave to send.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use fleetgate_runner::send::Cause;
use fleetgate_runner::{
    Clearance, CommandKind, Disposition, InvalidReply, Refused, SendError, Sent,
};
use futures_util::FutureExt;

fn cause() -> Cause {
    Arc::new(std::io::Error::other("gone"))
}

#[test]
fn each_failure_proves_what_it_can_and_no_more() {
    let window = Duration::from_secs(45);
    let not_an_envelope = InvalidReply::NotAnEnvelope {
        detail: String::new(),
    };
    let data = InvalidReply::Data {
        kind: CommandKind::Viewport,
        detail: String::new(),
    };
    for (error, disposition, transient) in [
        (SendError::NotAttached, Disposition::NotExecuted, true),
        (
            SendError::NotListening { port: Some(1) },
            Disposition::NotExecuted,
            true,
        ),
        (
            SendError::NotListening { port: None },
            Disposition::NotExecuted,
            true,
        ),
        (SendError::Connect(cause()), Disposition::NotExecuted, true),
        (
            SendError::Misunderstood(cause()),
            Disposition::NotExecuted,
            false,
        ),
        (
            SendError::RequestTooLarge { bytes: 3, limit: 2 },
            Disposition::NotExecuted,
            false,
        ),
        (
            SendError::Refused(Refused(cause())),
            Disposition::NotExecuted,
            false,
        ),
        (
            SendError::WindowClosed {
                window,
                sent: false,
            },
            Disposition::NotExecuted,
            true,
        ),
        (
            SendError::WindowClosed { window, sent: true },
            Disposition::Unknown,
            true,
        ),
        (SendError::Broken(cause()), Disposition::Unknown, true),
        (
            SendError::ReplyTooLarge { limit: 2 },
            Disposition::Unknown,
            false,
        ),
        (
            SendError::InvalidReply(not_an_envelope),
            Disposition::Unknown,
            true,
        ),
        (SendError::InvalidReply(data), Disposition::Executed, false),
    ] {
        assert_eq!(error.disposition(), disposition, "{error}");
        assert_eq!(error.is_transient(), transient, "{error}");
    }
}

#[test]
fn a_mark_is_seen_by_every_holder() {
    let sent = Sent::default();
    let other = sent.clone();
    assert!(!other.is_marked());
    sent.mark();
    assert!(other.is_marked());
}

#[test]
fn the_work_behind_a_leave_is_done_once_however_often_it_is_awaited() {
    let runs = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&runs);
    let leave = Clearance::when(async move {
        counted.fetch_add(1, Ordering::SeqCst);
        Ok(())
    });
    assert_eq!(runs.load(Ordering::SeqCst), 0);
    for _ in 0..3 {
        assert!(matches!(leave.cleared().now_or_never(), Some(Ok(()))));
    }
    assert_eq!(runs.load(Ordering::SeqCst), 1);
}

#[test]
fn a_leave_that_is_refused_stays_refused() {
    let leave = Clearance::when(async { Err(Refused(cause())) });
    for _ in 0..2 {
        let refused = leave.cleared().now_or_never().unwrap().unwrap_err();
        assert_eq!(refused.to_string(), "the command may not be sent: gone");
    }
    assert!(matches!(
        Clearance::granted().cleared().now_or_never(),
        Some(Ok(()))
    ));
}
