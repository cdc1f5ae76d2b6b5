//! A runner's reply, read as the answer to every kind of command, and the
//! replies that its journal retains.

use fleetgate_runner::{CommandKind, Envelope, InvalidReply, Reply, UnitPoint};

use super::{as_it_travels, assert_brief};

/// Takes the bytes as the reply to each kind of command.
///
/// # Panics
///
/// If the proof that a reply is, or its verdict against a command, depends on
/// the command; if a mutation's success can be spoilt by its data; if data that
/// misleads is taken; or if an envelope changes when it is written and read.
pub fn runner_reply(body: &[u8]) {
    let read = CommandKind::ALL.map(|kind| (kind, Envelope::decode(kind, body)));
    let proves = |read: &Result<Envelope, InvalidReply>| {
        !matches!(read, Err(InvalidReply::NotAnEnvelope { .. }))
    };
    let (_, first) = &read[0];
    for (kind, envelope) in &read {
        assert_eq!(proves(envelope), proves(first), "{kind}");
        if let Ok(Envelope { result: Err(_), .. }) = first {
            assert_eq!(envelope, first, "{kind}");
        }
        match envelope {
            Ok(envelope) => understood(*kind, envelope),
            Err(InvalidReply::NotAnEnvelope { detail }) => assert_brief(detail),
            Err(InvalidReply::Data { kind: told, detail }) => {
                assert_eq!(told, kind);
                assert!(!kind.is_mutation(), "it ran, whatever it says of itself");
                assert_brief(detail);
            }
        }
    }
}

fn understood(kind: CommandKind, envelope: &Envelope) {
    let mut envelope = envelope.clone();
    match &mut envelope.result {
        Ok(Reply::Viewport(viewport)) => {
            let middle = UnitPoint::new(0.5, 0.5).expect("finite");
            let place = viewport.at(middle).expect("a usable viewport");
            assert!(place.x.is_finite() && place.y.is_finite());
        }
        Ok(Reply::Status(status)) => status.uptime = as_it_travels(status.uptime),
        Ok(Reply::CommandStatus(entry)) => {
            if let Some(retained) = &entry.response_json {
                runner_reply(retained.as_bytes());
            }
        }
        Ok(Reply::Done(_)) => assert!(kind.is_mutation() || kind == CommandKind::Shutdown),
        Ok(Reply::Snapshot(_) | Reply::Screenshot(_)) | Err(_) => {}
    }
    assert_eq!(envelope.status() == 200, envelope.result.is_ok());
    assert_eq!(
        Envelope::decode(kind, &envelope.encode()),
        Ok(envelope),
        "{kind}"
    );
}
