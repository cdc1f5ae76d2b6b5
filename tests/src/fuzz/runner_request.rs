//! The runner's side of a request: the HTTP around it, and its body.

use fleetgate_runner::http::{FrameError, RequestDecoder};
use fleetgate_runner::{
    AppAction, AppCommand, Command, Effect, InvalidRequest, MAX_REQUEST_BYTES, Request, RunnerCode,
};

use super::{as_it_travels, assert_brief, cuts};

/// Takes the bytes as what comes in on a runner's connection, and as the body
/// of a request.
///
/// # Panics
///
/// If the body depends on how the bytes were cut or is no part of them, a limit
/// is passed, a request changes when it is written and read again, typed text
/// goes where it must not, or a refusal is not what a runner would say.
pub fn runner_request(data: &[u8]) {
    let [whole, others @ ..] = cuts(data).map(|pieces| receive(&pieces));
    for other in others {
        assert_eq!(other, whole, "the cut decides");
    }
    match whole {
        Ok(Some(framed)) => {
            let ends = data.windows(4).position(|window| window == b"\r\n\r\n");
            let start = ends.expect("a header block that ended") + 4;
            assert_eq!(framed, data[start..start + framed.len()]);
            assert!(start + framed.len() <= MAX_REQUEST_BYTES);
            body(&framed);
        }
        Ok(None) => assert!(data.len() <= MAX_REQUEST_BYTES),
        Err(error) => assert!(matches!(error.status(), 400 | 413)),
    }
    body(data);
}

/// What a decoder gives for these pieces, and nothing after that.
fn receive(pieces: &[&[u8]]) -> Result<Option<Vec<u8>>, FrameError> {
    let mut decoder = RequestDecoder::new();
    let mut outcome = Ok(None);
    for piece in pieces {
        let next = decoder.push(piece).map(|body| body.map(Vec::from));
        if matches!(outcome, Ok(None)) {
            outcome = next;
        } else {
            assert_eq!(next, Ok(None), "a connection carries one request");
        }
    }
    outcome
}

fn body(body: &[u8]) {
    match Request::decode(body) {
        Ok(request) => understood(request),
        Err(InvalidRequest::Undecodable(complaint)) => assert_brief(&complaint),
        Err(InvalidRequest::Unusable { verdict, .. }) => {
            assert!(matches!(
                verdict.code,
                RunnerCode::InvalidRequest | RunnerCode::AppBundleIdRequired
            ));
            assert_eq!(verdict.code.effect(), Effect::None);
        }
    }
}

fn understood(mut request: Request) {
    let kind = request.command.kind();
    if kind.bypasses_queue() {
        assert_eq!(request.command_id, None, "not journaled, so without an id");
    }
    assert_eq!(kind.is_mutation(), request.command.is_mutation());

    let written = request.encode();
    to_whole_milliseconds(&mut request.command);
    assert_eq!(request.encode(), written);
    let again = Request::decode(&written);
    assert_eq!(again.as_ref(), Ok(&request));

    let recorded = request.command.recorded();
    for absent in ["text", "command", "appBundleId", "commandId"] {
        assert!(!recorded.contains_key(absent), "{absent} is recorded");
    }
    if let Command::App(AppCommand {
        action: AppAction::Type { text },
        ..
    }) = &request.command
    {
        assert_eq!(recorded["textLength"], text.chars());
        let echo = text.expose().to_owned();
        assert_eq!(request.command.redact(echo), "[redacted]");
    }
}

fn to_whole_milliseconds(command: &mut Command) {
    let Command::App(AppCommand { action, .. }) = command else {
        return;
    };
    match action {
        AppAction::LongPress { duration, .. } => *duration = duration.map(as_it_travels),
        AppAction::Drag { duration, hold, .. } => {
            *duration = duration.map(as_it_travels);
            *hold = hold.map(as_it_travels);
        }
        AppAction::Viewport
        | AppAction::Tap { .. }
        | AppAction::Type { .. }
        | AppAction::KeyboardReturn
        | AppAction::KeyboardDelete
        | AppAction::Snapshot => {}
    }
}
