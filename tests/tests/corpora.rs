//! Replays what the fuzzer found worth keeping: every file of every corpus under
//! `tests/fuzz/corpus` goes through the check that its fuzz target runs.

use std::collections::BTreeSet;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use fleetgate_tests::fuzz;

fn corpora() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus")
}

fn entries(directory: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir(directory).expect("a directory");
    entries.map(|entry| entry.expect("an entry").path())
}

/// Runs `check` on every file of a corpus, and names those that break it.
fn replay(corpus: &str, check: fn(&[u8])) {
    let files: Vec<_> = entries(&corpora().join(corpus)).collect();
    assert!(!files.is_empty(), "the corpus {corpus} is empty");
    let breaks = |file: &&PathBuf| {
        let data = fs::read(file).expect("a file of the corpus");
        catch_unwind(AssertUnwindSafe(|| check(&data))).is_err()
    };
    let broken: Vec<_> = files.iter().filter(breaks).collect();
    assert!(broken.is_empty(), "broken by {broken:#?}");
}

#[test]
fn the_usbmux_codec_holds_for_its_corpus() {
    replay("usbmux", fuzz::usbmux);
}

#[test]
fn the_lockdown_codec_holds_for_its_corpus() {
    replay("lockdown", fuzz::lockdown);
}

#[test]
fn a_runners_log_holds_for_its_corpus() {
    replay("runner_log", fuzz::runner_log);
}

#[test]
fn the_runners_requests_hold_for_their_corpus() {
    replay("runner_request", fuzz::runner_request);
}

#[test]
fn the_runners_replies_hold_for_their_corpus() {
    replay("runner_reply", fuzz::runner_reply);
}

#[test]
fn the_configuration_holds_for_its_corpus() {
    replay("config", fuzz::config);
}

#[test]
fn names_hold_for_their_corpus() {
    replay("names", fuzz::names);
}

#[test]
fn every_fuzz_target_has_a_corpus_that_is_replayed() {
    let stems = |directory: &Path| -> BTreeSet<_> {
        let stem = |path: PathBuf| Some(path.file_stem()?.to_str()?.to_owned());
        entries(directory).filter_map(stem).collect()
    };
    let replayed = [
        "config",
        "lockdown",
        "names",
        "runner_log",
        "runner_reply",
        "runner_request",
        "usbmux",
    ];
    let replayed: BTreeSet<_> = replayed.map(str::to_owned).into();
    assert_eq!(stems(&corpora()), replayed);
    assert_eq!(stems(&corpora().join("../targets")), replayed);
}
