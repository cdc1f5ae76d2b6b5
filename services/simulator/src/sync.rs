//! The crate's one way to lock.
//!
//! No lock is held across an await, and a panic in one test's closure must not
//! turn every later look at the lab into another panic: a poisoned lock is
//! taken as it is, since every change under it is a whole one.

use std::sync::{Mutex, MutexGuard, PoisonError};

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
