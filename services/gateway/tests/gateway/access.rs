//! Who is let in, who is not, and what is told of it: by whom a call is made and
//! what its method takes.

use std::time::SystemTime;

use fleetgate_gateway::{Gateway, Row, Rule, StartError, TABLE};
use fleetgate_identity::Role;
use fleetgate_proto::v1 as pb;
use http::HeaderMap;
use tokio::net::TcpStream;
use tonic::Code;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;

use crate::guarded::{
    Guarded, Raw, calls, code, config, detail, everywhere, findable, in_rack, overrides, pause,
    runtime_dir, soon, token, tokens,
};
use crate::support::reason;

mod calls;
mod lasting;
mod scope;
mod ways;

/// What a caller with such a role, on the fleet or on a rack of it, is told.
fn expected(
    row: &Row,
    anywhere: Option<Role>,
    fleet_wide: Option<Role>,
) -> Result<(), &'static str> {
    match row.rule {
        Rule::Somewhere(needed) | Rule::Fleet(needed) if anywhere < Some(needed) => {
            Err("ROLE_TOO_LOW")
        }
        Rule::Fleet(needed) if fleet_wide < Some(needed) => Err("DEVICE_OUT_OF_SCOPE"),
        Rule::Open | Rule::AnyPrincipal | Rule::Somewhere(_) | Rule::Fleet(_) => Ok(()),
    }
}

#[tokio::test]
async fn every_method_lets_in_who_has_its_role_and_nobody_else_and_refusals_are_on_record() {
    let (viewer, operator, admin) = (Role::Viewer, Role::Operator, Role::Admin);
    let callers = [
        ("grantless", vec![], None, None),
        ("viewer", everywhere(viewer), Some(viewer), Some(viewer)),
        (
            "operator",
            everywhere(operator),
            Some(operator),
            Some(operator),
        ),
        ("admin", everywhere(admin), Some(admin), Some(admin)),
        ("viewer-a", vec![in_rack(viewer, "a")], Some(viewer), None),
        (
            "operator-a",
            vec![in_rack(operator, "a")],
            Some(operator),
            None,
        ),
        ("admin-a", vec![in_rack(admin, "a")], Some(admin), None),
    ];
    let known = callers.clone().map(|(name, grants, ..)| (name, grants));
    let guarded = Guarded::knowing(known, "").await;
    let mut raw = Raw::to(&guarded.gateway).await;
    // What ends the gateway comes last.
    let (mut rows, ends): (Vec<&Row>, Vec<&Row>) = TABLE
        .iter()
        .partition(|row| !row.path.ends_with("/DrainGateway"));
    rows.extend(ends);

    let mut refused = Vec::new();
    for row in &rows {
        let status = raw.by(row.path, "").await;
        if row.rule == Rule::Open {
            assert_ne!(code(status.as_ref()), Code::Unauthenticated, "{}", row.path);
        } else {
            let missing = (Code::Unauthenticated, "CREDENTIALS_MISSING".to_owned());
            assert_eq!(reason(&status.unwrap()), missing, "{}", row.path);
            refused.push(("unknown".to_owned(), row.path));
        }
    }
    for (name, _, anywhere, fleet_wide) in callers {
        for row in &rows {
            let status = raw.by(row.path, guarded.says(name)).await;
            let what = format!("{name} {}", row.path);
            match expected(row, anywhere, fleet_wide) {
                // Its handler has it: what that makes of an empty message is
                // no word about who calls.
                Ok(()) => {
                    let code = code(status.as_ref());
                    let refusals = [
                        Code::Unauthenticated,
                        Code::PermissionDenied,
                        Code::Unimplemented,
                        Code::Unavailable,
                    ];
                    assert!(!refusals.contains(&code), "{what}: {status:?}");
                }
                Err(why) => {
                    let denied = (Code::PermissionDenied, why.to_owned());
                    assert_eq!(reason(&status.unwrap()), denied, "{what}");
                    refused.push((format!("token:{name}"), row.path));
                }
            }
        }
    }
    drop(raw);

    let entries = guarded.end().await;
    let told: u64 = entries.iter().map(calls).sum();
    assert_eq!(told, refused.len() as u64, "each is told of or counted");
    for entry in &entries {
        let operation = &entry.operation;
        let path = operation.target.as_deref().unwrap();
        assert!(
            refused
                .iter()
                .any(|(who, refused)| *who == operation.who && *refused == path),
            "{operation:?}"
        );
        assert!(operation.detail.contains_key("reason"), "{operation:?}");
        assert!(operation.detail.contains_key("address"), "{operation:?}");
    }
}

#[tokio::test]
async fn a_method_that_is_not_there_is_said_to_be_none_to_everybody() {
    let guarded = Guarded::start("").await;
    let mut raw = Raw::to(&guarded.gateway).await;
    for path in [
        "/fleetgate.v1.FleetService/Reboot",
        "/nobody.v1.Service/Call",
        "/",
    ] {
        for says in ["", "Bearer nonsense", &guarded.admin] {
            let status = raw.by(path, says).await.unwrap();
            assert_eq!(status.code(), Code::Unimplemented, "{path} {says}");
        }
    }
    drop(raw);
    assert_eq!(guarded.end().await, [], "nobody was denied anything");
}

#[tokio::test]
async fn health_is_told_to_everybody() {
    let guarded = Guarded::start("").await;
    let mut health = HealthClient::new(guarded.channel().await);
    let service = "fleetgate.v1.FleetService".to_owned();
    health.check(HealthCheckRequest { service }).await.unwrap();
    drop(health);
    guarded.gateway.shutdown().await;
}

#[tokio::test]
async fn a_flood_of_denied_calls_is_a_few_entries_and_a_number() {
    const CALLS: u64 = 300;
    let guarded = Guarded::start("").await;
    let mut raw = Raw::to(&guarded.gateway).await;
    let began = SystemTime::now();
    for _ in 0..CALLS {
        let status = raw
            .by("/fleetgate.v1.FleetService/GetGateway", "Bearer no")
            .await;
        assert_eq!(status.unwrap().code(), Code::Unauthenticated);
    }
    let seconds = began.elapsed().unwrap().as_secs();
    drop(raw);
    let entries = guarded.end().await;
    // A burst, one in each second, and what is left at the end.
    assert!(
        entries.len() as u64 <= 20 + seconds + 2,
        "{}",
        entries.len()
    );
    assert_eq!(entries.iter().map(calls).sum::<u64>(), CALLS);
}

#[tokio::test]
async fn what_an_operator_does_bears_its_name_and_where_it_was_asked_for() {
    let guarded = Guarded::knowing([("ann", everywhere(Role::Operator))], "").await;
    let mut clients = guarded.by(guarded.says("ann")).await;
    let cordon = pb::CordonDeviceRequest {
        device: "left".to_owned(),
        reason: "a new battery".to_owned(),
        until: None,
    };
    let device = clients.fleet.cordon_device(cordon).await.unwrap();
    let device = device.into_inner().device.unwrap();
    assert_eq!(device.cordon.unwrap().who, "token:ann");

    let mut admin = guarded.by(&guarded.admin).await;
    let tail = pb::TailCommandsRequest {
        until_now: true,
        ..pb::TailCommandsRequest::default()
    };
    let mut events = admin.ledger.tail_commands(tail).await.unwrap().into_inner();
    let mut found = None;
    while let Some(message) = soon("an event", events.message()).await.unwrap() {
        if let Some(pb::tail_commands_response::Item::Event(event)) = message.item
            && let Some(pb::ledger_event::Entry::Operation(operation)) = event.entry
            && operation.what == "cordon-device"
        {
            found = Some(operation);
        }
    }
    let operation = found.unwrap();
    assert_eq!(operation.who, "token:ann");
    let address = detail(&operation, "address").unwrap();
    assert!(address.starts_with("127.0.0.1:"), "{address}");
    drop((clients, admin));
    guarded.gateway.shutdown().await;
}

#[tokio::test]
async fn the_discovery_record_lets_its_owner_in_and_goes_with_the_gateway() {
    let guarded = Guarded::start_in(tempfile::tempdir().unwrap(), |directory| {
        findable(directory, "")
    })
    .await;
    let instances = guarded.instances();
    let records = instances.list().unwrap();
    let [record] = records.as_slice() else {
        panic!("one record: {records:?}")
    };
    assert_eq!(record.address, guarded.gateway.local_addr());
    assert_eq!(record.pid, std::process::id());
    assert!(!record.tls);
    let mut clients = guarded
        .by(&format!("Bearer {}", record.token.expose()))
        .await;
    let drain = pb::DrainGatewayRequest::default();
    clients.fleet.drain_gateway(drain).await.unwrap();
    drop(clients);
    guarded.gateway.shutdown().await;
    assert_eq!(instances.list().unwrap(), []);
}

#[tokio::test]
async fn a_gateway_that_cannot_be_found_does_not_start() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(runtime_dir(&directory), "in the way").unwrap();
    let config = findable(&directory, "");
    let error = Gateway::start(config, overrides(&directory))
        .await
        .unwrap_err();
    assert!(matches!(error, StartError::Discovery(_)), "{error}");
    let message = error.to_string();
    for word in ["FLEETGATE_RUNTIME_DIR", "discovery of [auth]"] {
        assert!(message.contains(word), "{message}");
    }
}

#[tokio::test]
async fn what_others_could_reach_does_not_start_without_a_way_to_know_them() {
    let directory = tempfile::tempdir().unwrap();
    let mut config = config(&directory, "");
    config.server.listen = "0.0.0.0:0".parse::<std::net::SocketAddr>().unwrap().into();
    let error = Gateway::start(config, overrides(&directory))
        .await
        .unwrap_err();
    assert!(matches!(error, StartError::Auth(_)), "{error}");
    assert!(
        error.to_string().contains("fleetgate token create"),
        "{error}"
    );
    assert!(
        !directory.path().join("ledger.db").exists(),
        "nothing was begun"
    );
}

#[tokio::test]
async fn a_file_of_tokens_that_others_may_read_keeps_the_gateway_from_starting() {
    use std::os::unix::fs::PermissionsExt;
    let directory = tempfile::tempdir().unwrap();
    let tokens = tokens(&directory);
    std::fs::create_dir(tokens.path().parent().unwrap()).unwrap();
    std::fs::write(tokens.path(), "version = 1\n").unwrap();
    let open = std::fs::Permissions::from_mode(0o644);
    std::fs::set_permissions(tokens.path(), open).unwrap();
    let config = config(&directory, "");
    let error = Gateway::start(config, overrides(&directory))
        .await
        .unwrap_err();
    assert!(matches!(error, StartError::Identity(_)), "{error}");
    assert!(error.to_string().contains("chmod"), "{error}");
}

/// A call over HTTP/1.1, as a page makes it.
async fn from_page(guarded: &Guarded, headers: &str) -> String {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let address = guarded.gateway.local_addr();
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!(
        "POST /fleetgate.v1.FleetService/GetGateway HTTP/1.1\r\nHost: {address}\r\n\
         Content-Type: application/grpc-web+proto\r\nContent-Length: 5\r\n\
         Connection: close\r\n{headers}\r\n\0\0\0\0\0"
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    soon("an answer", stream.read_to_end(&mut answer))
        .await
        .unwrap();
    String::from_utf8_lossy(&answer).into_owned()
}

#[tokio::test]
async fn grpc_web_takes_credentials_and_refuses_with_a_status() {
    let guarded = Guarded::start("").await;
    let answer = from_page(&guarded, "").await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert!(
        answer.contains("grpc-status: 16") || answer.contains("grpc-status:16"),
        "{answer}"
    );
    let answer = from_page(&guarded, &format!("Authorization: {}\r\n", guarded.admin)).await;
    assert!(answer.contains("grpc-status:0"), "{answer}");
    assert!(
        !answer.to_lowercase().contains("access-control"),
        "{answer}"
    );
    guarded.gateway.shutdown().await;
}

#[tokio::test]
async fn of_two_credentials_none_counts() {
    let guarded = Guarded::start("auth.anonymous = \"admin\"").await;
    let mut raw = Raw::to(&guarded.gateway).await;
    let mut headers = HeaderMap::new();
    headers.append("authorization", guarded.admin.parse().unwrap());
    headers.append("authorization", guarded.admin.parse().unwrap());
    let status = raw
        .call("/fleetgate.v1.FleetService/GetGateway", headers)
        .await;
    let invalid = (Code::Unauthenticated, "CREDENTIALS_INVALID".to_owned());
    assert_eq!(reason(&status.unwrap()), invalid);
    drop(raw);
    guarded.gateway.shutdown().await;
}

#[tokio::test]
async fn a_token_that_is_made_or_revoked_counts_without_a_restart() {
    let guarded = Guarded::start("").await;
    let (info, token) = token(&guarded.tokens, "late", everywhere(Role::Viewer), None);
    let mut raw = Raw::to(&guarded.gateway).await;
    let path = "/fleetgate.v1.FleetService/GetGateway";
    let status = raw.by(path, &token).await;
    assert_eq!(code(status.as_ref()), Code::Ok, "at once: {status:?}");
    guarded.tokens.revoke(info.id.as_str()).unwrap();
    let refused = async {
        while code(raw.by(path, &token).await.as_ref()) != Code::Unauthenticated {
            pause().await;
        }
    };
    soon("its end", refused).await;
    drop(raw);
    guarded.gateway.shutdown().await;
}
