//! A runner that repeats what it was to type, at every way by which its words
//! come in: they reach neither callers nor the record nor a log, of any level.

use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use fleetgate_runner::{InvalidReply, JournalEntry, RunnerCode, RunnerError};
use tower::{ServiceExt, service_fn};
use tracing::subscriber::DefaultGuard;
use tracing_subscriber::fmt::format::FmtSpan;

use super::*;
use crate::testing::{SECRET, broken, busy, type_secret};

/// What this thread logs.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    fn begin() -> (Self, DefaultGuard) {
        let log = Self::default();
        let writer = log.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_max_level(tracing::Level::TRACE)
            .with_span_events(FmtSpan::FULL)
            .with_ansi(false)
            .with_writer(move || writer.clone())
            .finish();
        (log, tracing::subscriber::set_default(subscriber))
    }

    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The text in the disguises that are known; each holds a piece of it.
fn disguises() -> [String; 6] {
    let spelled: Vec<String> = SECRET.chars().map(String::from).collect();
    [
        SECRET.to_owned(),
        SECRET.to_uppercase(),
        SECRET[..8].to_owned(),
        SECRET[6..].to_owned(),
        spelled.join("\\n"),
        format!("{SECRET}, which is {}", &SECRET[..5]),
    ]
}

#[track_caller]
fn assert_silent(place: &str, told: &str) {
    let plain = told.to_lowercase().replace("\\\\n", "").replace("\\n", "");
    for line in plain.lines() {
        let letters: String = line.chars().filter(|char| char.is_alphanumeric()).collect();
        for piece in ["hunt", "nter2", "2can", "nary"] {
            assert!(!letters.contains(piece), "{piece} is in {place}: {line}");
        }
    }
}

/// What everybody is told of a command that types, if the phone says this.
async fn told(answer: impl AsyncFnOnce(&mut Rig, SendResponse<Envelope>)) -> String {
    let (log, _guard) = Log::begin();
    let mut rig = Rig::new();
    let mut call = rig.call(job("c-1", type_secret()));
    let reply = rig.sent("c-1").await;
    answer(&mut rig, reply).await;
    let outcome = loop {
        tokio::select! {
            outcome = &mut call => break outcome,
            (question, reply) = sent(&mut rig.phone) => reply.send_response(knows_nothing(&question)),
        }
    };
    let logged = log.text();
    assert!(logged.contains("fleetgate.command.id=c-1"), "{logged}");
    assert_silent("the log", &logged);
    let conclusion = rig.ledger.conclusion();
    assert_eq!(conclusion.receipt.command_id, id("c-1"));
    assert_silent("the record", &format!("{conclusion:?}"));
    if let Err(Failed { failure, .. }) = &outcome {
        let hint = failure.hint().unwrap_or_default();
        assert_silent("the hint", &hint);
        assert_silent("the words", &format!("{failure} {}", failure.reason()));
    }
    let told = format!("{outcome:?}");
    assert_silent("the answer", &told);
    told
}

fn failed(code: RunnerCode, words: &str) -> RunnerError {
    RunnerError {
        code,
        message: format!("could not type {words}"),
        hint: Some(format!("do not type {words}")),
    }
}

/// An entry of the journal with these words in it.
fn entry_of(words: &str, retained: Option<Envelope>) -> Envelope {
    let response_json = retained.map(|envelope| String::from_utf8(envelope.encode()).unwrap());
    let state = match &response_json {
        Some(json) if json.contains("\"ok\":true") => JournalState::Completed,
        Some(_) | None => JournalState::Failed,
    };
    journal(JournalEntry {
        response_json,
        error: Some(failed(RunnerCode::CommandFailed, words)),
        ..entry("c-1", state)
    })
}

fn done_with(words: &str) -> Envelope {
    Envelope {
        warning: Some(format!("perhaps not {words}")),
        ..envelope(Ok(Reply::Done(format!("typed {words}"))))
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_runner_says_at_once_is_silenced() {
    for words in &disguises() {
        for code in [
            RunnerCode::CommandFailed,
            RunnerCode::XctestRecordedFailure,
            RunnerCode::Other(words.clone()),
        ] {
            let verdict = envelope(Err(failed(code, words)));
            let told = told(async |_, reply| reply.send_response(verdict)).await;
            assert!(told.contains("Failed"), "{told}");
        }
        let told = told(async |_, reply| reply.send_response(done_with(words))).await;
        assert!(told.contains("Completed"), "{told}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_busy_runner_says_between_two_attempts_is_silenced() {
    for words in &disguises() {
        let declined = envelope(Err(failed(RunnerCode::RunnerBusy, words)));
        let told = told(async |rig, reply| {
            reply.send_response(declined);
            rig.sent("c-1").await.send_response(busy());
            rig.sent("c-1").await.send_response(done_with(words));
        })
        .await;
        assert!(told.contains("attempts: 3"), "{told}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_the_journal_says_is_silenced() {
    for words in &disguises() {
        for retained in [
            None,
            Some(done_with(words)),
            Some(envelope(Err(failed(RunnerCode::CommandFailed, words)))),
        ] {
            let entry = entry_of(words, retained);
            let told = told(async |rig, reply| {
                reply.send_error(broken());
                let (_, reply) = rig.sent_kind(CommandKind::CommandStatus).await;
                reply.send_response(entry);
            })
            .await;
            assert!(told.contains("recovered: true"), "{told}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn replies_that_cannot_be_used_are_described_without_quoting_them() {
    for words in &disguises() {
        let quoted = serde_json::to_string(words).unwrap();
        for body in [
            words.clone(),
            quoted.clone(),
            format!("{{\"ok\":{quoted}}}"),
            format!("{{\"ok\":false,{quoted}}}"),
        ] {
            let garbage = || Envelope::decode(CommandKind::Type, body.as_bytes()).unwrap_err();
            told(async |rig, reply| {
                reply.send_error(SendError::from(garbage()));
                // So is what comes of asking.
                let (_, reply) = rig.sent_kind(CommandKind::CommandStatus).await;
                reply.send_error(SendError::from(garbage()));
                let (_, reply) = rig.sent_kind(CommandKind::CommandStatus).await;
                let refused = failed(RunnerCode::Other(words.clone()), words);
                reply.send_response(envelope(Err(refused)));
                let (_, reply) = rig.sent_kind(CommandKind::CommandStatus).await;
                reply.send_response(journal(JournalEntry {
                    response_json: Some(body.clone()),
                    ..entry("c-1", JournalState::Completed)
                }));
            })
            .await;
        }
    }
}

/// A panic's own words are for whoever installs a hook; nothing here repeats
/// them.
#[tokio::test(start_paused = true)]
async fn an_exchange_that_panics_with_the_text_is_a_crash_and_no_more() {
    let (log, _guard) = Log::begin();
    let exchange = service_fn(|exchange: Exchange| async move {
        exchange.clearance.cleared().await?;
        exchange.sent.mark();
        panic!("could not type {SECRET}");
        #[expect(unreachable_code, reason = "it says what the service answers")]
        Err(InvalidReply::NotAnEnvelope {
            detail: String::new(),
        }
        .into())
    });
    let ledger = Ledger::new();
    let config = SessionConfig::default();
    let (session, task) = Session::spawn(device(), exchange, ledger.clone(), config, Vec::new());
    let outcome = session.oneshot(job("c-1", type_secret())).await;
    let failed = outcome.unwrap_err();
    assert!(matches!(failed.failure, Failure::Crashed));
    assert_silent("the answer", &format!("{failed:?}"));
    assert_silent("the record", &format!("{:?}", ledger.conclusion()));
    task.shutdown(Duration::ZERO).await;
    assert_silent("the log", &log.text());
}
