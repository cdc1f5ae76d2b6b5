//! The crate's one way to lock and its one way to stop.
//!
//! No lock is held across an await, and a panic in one test's closure must not
//! turn every later look at the lab into another panic: a poisoned lock is
//! taken as it is, since every change under it is a whole one.
//!
//! What is stopped must not take one more step, or a runner that was killed
//! could still land its tap: so stopping is looked at first, unlike in the
//! token's own `run_until_cancelled`.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio_util::sync::CancellationToken;

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs `work` until it ends or `stop` is cancelled; then it is not polled
/// again.
pub(crate) async fn until_stopped<T>(
    stop: &CancellationToken,
    work: impl Future<Output = T>,
) -> Option<T> {
    tokio::select! {
        biased;
        () = stop.cancelled() => None,
        done = work => Some(done),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_is_stopped_takes_not_one_more_step() {
        let stop = CancellationToken::new();
        let (go, gone) = tokio::sync::oneshot::channel();
        // At the next step of the work, it is both ready and stopped.
        let meanwhile = async {
            tokio::task::yield_now().await;
            stop.cancel();
            go.send("one more step").unwrap();
        };
        let (outcome, ()) = tokio::join!(until_stopped(&stop, gone), meanwhile);
        assert_eq!(outcome, None);
    }
}
