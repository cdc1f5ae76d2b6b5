//! Waiting that has an end: what does not come is said to be missing, and by
//! name.
//!
//! A test that hangs says nothing. What it prints is kept until it ends, and so
//! are the words of a panic while a runtime does not end: so what did not come
//! is told to standard error at once, past the harness.

use std::fmt;
use std::io::{self, Write};
use std::time::Duration;

use fleetgate_gateway::{Config, Drained, Gateway};
use tokio::time::timeout;

/// Longer than anything a test waits for takes.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// Longer than any call takes, whatever befalls the phone and the gateway.
pub const A_CALL: Duration = Duration::from_secs(120);

/// Waits for something that must come.
pub fn soon<T>(what: &str, future: impl Future<Output = T>) -> impl Future<Output = T> {
    within(PATIENCE, what, future)
}

/// Waits for something that must come, but may take so long.
pub fn within<T>(
    patience: Duration,
    what: &str,
    future: impl Future<Output = T>,
) -> impl Future<Output = T> {
    // What is waited for may be a whole script.
    let future = Box::pin(future);
    async move {
        timeout(patience, future).await.unwrap_or_else(|_elapsed| {
            let missing = format!("{what} did not come within {patience:?}");
            tell(&missing);
            panic!("{missing}")
        })
    }
}

/// Ends a gateway properly, within the time that it may take.
pub(crate) async fn ended(gateway: Gateway, config: &Config) -> Drained {
    let patience = config.server.drain_timeout + PATIENCE;
    within(patience, "the gateway's end", gateway.shutdown()).await
}

/// Says something at once, whatever the harness keeps back.
pub(crate) fn tell(words: impl fmt::Display) {
    // Nobody is there to hear that it cannot be said.
    drop(writeln!(io::stderr(), "{words}"));
}
