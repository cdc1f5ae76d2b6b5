//! Log lines of a process that serves: to stderr, so that stdout stays free.
//!
//! A panic is one of them. Where it happened is told; its words only if they
//! stand in the source as they are, since others are made of values, and a value
//! can be what somebody typed.

use std::any::Any;
use std::backtrace::{Backtrace, BacktraceStatus};
use std::{io, panic};

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
        .context("cannot start logging")?;
    panic::set_hook(Box::new(|panicked| {
        let place = panicked.location().map(ToString::to_string);
        let words = fixed_words(panicked.payload());
        // The names of functions, and no values: if RUST_BACKTRACE asks for it.
        let trace = Backtrace::capture();
        if trace.status() == BacktraceStatus::Captured {
            tracing::error!(place, %trace, "panicked: {words}");
        } else {
            tracing::error!(place, "panicked: {words}");
        }
    }));
    Ok(())
}

/// What a panic says, if that is the same every time.
fn fixed_words(payload: &(dyn Any + Send)) -> &'static str {
    let fixed = payload.downcast_ref::<&'static str>().copied();
    fixed.unwrap_or("[words withheld, as they may quote what was typed]")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panics_words_are_told_if_they_are_the_same_every_time() {
        let words = |panics: fn(&str)| {
            let text = std::hint::black_box("hünter2");
            let payload = panic::catch_unwind(|| panics(text)).unwrap_err();
            fixed_words(payload.as_ref())
        };
        assert_eq!(words(|_| panic!("it was full")), "it was full");
        let withheld = "[words withheld, as they may quote what was typed]";
        assert_eq!(words(|text| panic!("could not type {text}")), withheld);
        // Which quotes what it cannot cut.
        assert_eq!(words(|text| drop(text[..2].to_owned())), withheld);
        assert_eq!(words(|text| assert_eq!(text, "x")), withheld);
    }
}
