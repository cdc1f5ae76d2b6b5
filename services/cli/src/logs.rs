//! Log lines of a process that serves: to stderr, so that stdout stays free.

use std::io;

use anyhow::Context as _;
use tracing_subscriber::filter::EnvFilter;
use tracing_subscriber::layer::{Layer, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;

/// Begins to log what the filter lets through, as text or as one JSON object
/// per line. The filter belongs to the layer, so that it silences nothing else.
pub(crate) fn start(filter: &str, json: bool) -> anyhow::Result<()> {
    let filter =
        EnvFilter::try_new(filter).with_context(|| format!("bad log filter {filter:?}"))?;
    let lines = tracing_subscriber::fmt::layer().with_writer(io::stderr);
    let layer = if json {
        lines.json().with_filter(filter).boxed()
    } else {
        let colours = io::IsTerminal::is_terminal(&io::stderr());
        lines.with_ansi(colours).with_filter(filter).boxed()
    };
    tracing_subscriber::registry()
        .with(layer)
        .try_init()
        .context("cannot start logging")
}
