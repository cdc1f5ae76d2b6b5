//! Every fault that the simulator knows, and where it strikes: a new one does
//! not compile before [`befalls`] names it, and then wants a row.

use fleetgate_simulator::Injection;

/// As far as the matrix cares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Before the command is known.
    Connection,
    /// While it runs.
    Execution,
    /// Anywhere else.
    Elsewhere,
    /// Never: it is no fault of a mutation.
    Nowhere,
}

/// Every fault by its name, and where it strikes.
pub(crate) fn befalls(injection: &Injection) -> (&'static str, Stage) {
    match injection {
        Injection::ConnectResult { .. } => ("connect_result", Stage::Connection),
        Injection::DropConnection => ("drop_connection", Stage::Connection),
        Injection::HalfOpen => ("half_open", Stage::Connection),
        Injection::UsbmuxdRestart { .. } => ("usbmuxd_restart", Stage::Connection),
        Injection::Replug => ("replug", Stage::Connection),
        Injection::ReplyLostBeforeExecution => ("reply_lost_before_execution", Stage::Elsewhere),
        Injection::ReplyLostDuringExecution => ("reply_lost_during_execution", Stage::Elsewhere),
        Injection::Busy => ("busy", Stage::Elsewhere),
        Injection::Slow { .. } => ("slow", Stage::Execution),
        Injection::NeverEnds => ("never_ends", Stage::Execution),
        Injection::Error { .. } => ("error", Stage::Execution),
        Injection::EchoText => ("echo_text", Stage::Execution),
        Injection::ActivationFails => ("activation_fails", Stage::Execution),
        Injection::RecordedFailure => ("recorded_failure", Stage::Execution),
        Injection::SuppressedIssue => ("suppressed_issue", Stage::Execution),
        Injection::LongMessage { .. } => ("long_message", Stage::Execution),
        Injection::Killed { .. } => ("killed", Stage::Execution),
        Injection::SnapshotFailed => ("snapshot_failed", Stage::Nowhere),
        Injection::SnapshotFlaky => ("snapshot_flaky", Stage::Nowhere),
        Injection::JournalEvicted => ("journal_evicted", Stage::Elsewhere),
        Injection::ReplyLostAfterExecution => ("reply_lost_after_execution", Stage::Elsewhere),
        Injection::GarbageReply => ("garbage_reply", Stage::Elsewhere),
        Injection::NotJson => ("not_json", Stage::Elsewhere),
        Injection::NotAnEnvelope => ("not_an_envelope", Stage::Elsewhere),
        Injection::ReplyBody { .. } => ("reply_body", Stage::Elsewhere),
        Injection::PartialReply => ("partial_reply", Stage::Elsewhere),
        Injection::TruncatedReply => ("truncated_reply", Stage::Elsewhere),
        Injection::OversizeReply { .. } => ("oversize_reply", Stage::Elsewhere),
    }
}

/// The names of all faults that can befall a mutation.
pub(crate) const FAULTS: [&str; 26] = [
    "connect_result",
    "drop_connection",
    "half_open",
    "usbmuxd_restart",
    "replug",
    "reply_lost_before_execution",
    "reply_lost_during_execution",
    "busy",
    "slow",
    "never_ends",
    "error",
    "echo_text",
    "activation_fails",
    "recorded_failure",
    "suppressed_issue",
    "long_message",
    "killed",
    "journal_evicted",
    "reply_lost_after_execution",
    "garbage_reply",
    "not_json",
    "not_an_envelope",
    "reply_body",
    "partial_reply",
    "truncated_reply",
    "oversize_reply",
];
