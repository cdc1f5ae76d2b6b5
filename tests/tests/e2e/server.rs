//! The server below the API: health, reflection, gRPC-Web, and clients that
//! send too much, ask too often or read too slowly.

use std::collections::BTreeSet;
use std::time::Duration;

use fleetgate_proto::v1 as pb;
use fleetgate_proto::v1::automation_service_client::AutomationServiceClient;
use fleetgate_proto::v1::fleet_service_client::FleetServiceClient;
use fleetgate_runner::CommandKind;
use fleetgate_simulator::{Fault, Injection, Scenario};
use fleetgate_tests::facts::{clean, effects, in_no_file};
use fleetgate_tests::raw::{GOAWAY, PING, Raw};
use fleetgate_tests::{APP, Rig, plain, refused, screen, soon};
use prost::Message as _;
use tokio::task::JoinSet;
use tokio_stream::StreamExt;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;
use tonic_reflection::pb::{v1, v1alpha};

const SERVICES: [&str; 4] = [
    "fleetgate.v1.AutomationService",
    "fleetgate.v1.FleetService",
    "fleetgate.v1.LeaseService",
    "fleetgate.v1.LedgerService",
];

fn tap(device: String, command_id: &str) -> pb::TapRequest {
    pb::TapRequest {
        device,
        command_id: Some(command_id.to_owned()),
        app_bundle_id: APP.to_owned(),
        point: plain::absolute(20.0, 30.0),
        ..pb::TapRequest::default()
    }
}

async fn gateway_answers(channel: Channel) {
    let request = pb::GetGatewayRequest {};
    FleetServiceClient::new(channel)
        .get_gateway(request)
        .await
        .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn health_is_told_of_the_server_and_of_each_service() {
    let rig = Rig::plain(0).await;
    let mut health = HealthClient::new(rig.channel());
    for service in SERVICES.into_iter().chain([""]) {
        let service = service.to_owned();
        let reply = health.check(HealthCheckRequest { service }).await.unwrap();
        assert_eq!(reply.get_ref().status(), ServingStatus::Serving);
    }
    let service = "fleetgate.v1.Nobody".to_owned();
    let unknown = health.check(HealthCheckRequest { service }).await;
    assert_eq!(unknown.unwrap_err().code(), Code::NotFound);
    drop(health);
    rig.stop().await;
}

/// What reflection tells, in either version of its protocol: they have the
/// same messages under two names.
macro_rules! reflected {
    ($version:ident, $channel:expr) => {{
        use $version::server_reflection_client::ServerReflectionClient;
        use $version::server_reflection_request::MessageRequest;
        use $version::server_reflection_response::MessageResponse;
        let questions = std::iter::once(MessageRequest::ListServices(String::new())).chain(
            SERVICES.map(|service| MessageRequest::FileContainingSymbol(service.to_owned())),
        );
        let questions = questions.map(|question| $version::ServerReflectionRequest {
            host: String::new(),
            message_request: Some(question),
        });
        let questions = tokio_stream::iter(questions.collect::<Vec<_>>());
        let answers = ServerReflectionClient::new($channel)
            .server_reflection_info(questions)
            .await
            .unwrap()
            .into_inner();
        let (mut services, mut files) = (BTreeSet::new(), BTreeSet::new());
        let answers: Vec<_> = answers.collect().await;
        for answer in answers {
            match answer.unwrap().message_response.unwrap() {
                MessageResponse::ListServicesResponse(list) => {
                    services.extend(list.service.into_iter().map(|service| service.name));
                }
                MessageResponse::FileDescriptorResponse(found) => {
                    for file in found.file_descriptor_proto {
                        let file = prost_types::FileDescriptorProto::decode(&*file).unwrap();
                        files.insert(file.name().to_owned());
                    }
                }
                other => panic!("{other:?}"),
            }
        }
        // Each version knows itself by its own name only.
        services.retain(|service| !service.starts_with("grpc.reflection."));
        (services, files)
    }};
}

#[tokio::test(flavor = "multi_thread")]
async fn reflection_describes_every_service_in_both_versions() {
    let rig = Rig::plain(0).await;
    let (services, files) = reflected!(v1, rig.channel());
    let expected = SERVICES.into_iter().chain(["grpc.health.v1.Health"]);
    assert_eq!(services, expected.map(str::to_owned).collect());
    for file in ["automation", "fleet", "lease", "ledger"] {
        let file = format!("fleetgate/v1/{file}.proto");
        assert!(files.contains(&file), "{file} in {files:?}");
    }
    assert_eq!(reflected!(v1alpha, rig.channel()), (services, files));
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_too_large_is_refused_and_the_connection_stays_usable() {
    let rig = Rig::plain(1).await;
    let (phone, udid) = (rig.phone(0), rig.udid(0));
    screen::focus(&phone);
    let typed = |command_id: &str, text: &str| pb::TypeTextRequest {
        device: udid.clone(),
        command_id: Some(command_id.to_owned()),
        lease: None,
        app_bundle_id: APP.to_owned(),
        text: text.to_owned(),
    };

    // More than a message may be: gRPC's own limit.
    let text = "canary ".repeat(5 << 20 >> 3);
    let refusal = refused(rig.automation().type_text(typed("5-mb", &text)).await);
    assert_eq!(refusal.code, Code::OutOfRange, "{refusal:?}");
    assert!(refusal.message.contains("too large"), "{refusal:?}");
    assert_eq!(rig.find("5-mb").await, None);

    // A good message, and more than a runner takes.
    let text = "canary ".repeat(3 << 20 >> 3);
    let refusal = refused(rig.automation().type_text(typed("3-mb", &text)).await);
    assert_eq!(refusal.code, Code::InvalidArgument, "{refusal:?}");
    assert_eq!(refusal.violations.len(), 1, "{refusal:?}");
    assert_eq!(refusal.violations[0].0, "text", "{refusal:?}");
    assert_eq!(
        (refusal.meta("fate"), refusal.meta("effect")),
        ("NOT_SENT", "NONE")
    );
    assert_eq!(rig.find("3-mb").await, None);

    // 64 KiB of metadata are more than a header may be.
    let mut request = Request::new(tap(udid.clone(), "metadata"));
    let value = "m".repeat(64 << 10).parse().unwrap();
    request.metadata_mut().insert("x-large", value);
    let refusal = refused(rig.automation().tap(request).await);
    assert_eq!(refusal.code, Code::ResourceExhausted, "{refusal:?}");
    assert_eq!(rig.find("metadata").await, None);

    let reply = rig.automation().type_text(typed("fits", "text")).await;
    clean(reply.unwrap().into_inner().receipt, "fits");
    assert_eq!(screen::text(&phone), "text");
    assert_eq!(phone.effects().len(), 1);
    let (_, lab, dir) = rig.stop_gateway().await;
    in_no_file(dir.path(), "canary", "fits");
    lab.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_above_the_limit_of_a_connection_wait_and_other_connections_do_not() {
    let scenario = Scenario::fleet(2).scaled(0.05);
    let rig = Rig::configured(scenario, |config| {
        config.server.max_concurrent_streams = 2.try_into().unwrap();
    })
    .await;
    let mut calls = JoinSet::new();
    let crowded = rig.connect().await;
    // The server's limit reaches its client with its first words.
    gateway_answers(crowded.clone()).await;
    for n in [0, 1] {
        let by = Duration::from_secs(40);
        rig.phone(n)
            .fault(Fault::from(Injection::Slow { by }).on(CommandKind::Tap));
        let (mut client, udid) = (AutomationServiceClient::new(crowded.clone()), rig.udid(n));
        calls.spawn(async move { client.tap(tap(udid, &format!("slow-{n}"))).await });
    }
    soon("two taps", rig.lab.wait_until(|load| load.in_flight == 2)).await;

    let mut third = Box::pin(gateway_answers(crowded));
    let others = async {
        for _ in 0..20 {
            gateway_answers(rig.channel()).await;
        }
    };
    tokio::select! {
        biased;
        () = &mut third => panic!("a third call on a connection for two"),
        () = others => {}
    }
    assert_eq!(rig.lab.load().in_flight, 2, "both taps still go on");
    third.await;
    for call in calls.join_all().await {
        call.unwrap();
    }
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_may_ping_as_often_as_it_likes() {
    const PINGS: u64 = 2_000;
    let scenario = Scenario::fleet(1).scaled(0.05);
    let rig = Rig::start(scenario).await;

    let mut raw = Raw::connect(&rig).await;
    let mut pings = Vec::new();
    for ping in 0..PINGS {
        pings.extend_from_slice(&[0, 0, 8, PING, 0, 0, 0, 0, 0]);
        pings.extend_from_slice(&ping.to_be_bytes());
    }
    raw.send(&pings).await;
    let mut answered = 0;
    while answered < PINGS {
        let frame = soon("a frame", raw.frame()).await.unwrap();
        assert_ne!(frame.kind, GOAWAY, "{frame:?}");
        if frame.kind == PING {
            assert_eq!(
                (frame.flags, frame.payload),
                (1, answered.to_be_bytes().into())
            );
            answered += 1;
        }
    }

    // A ping every few milliseconds, idle and during a tap of some seconds.
    let channel = Endpoint::from_shared(rig.url())
        .unwrap()
        .http2_keep_alive_interval(Duration::from_millis(5))
        .keep_alive_while_idle(true)
        .connect()
        .await
        .unwrap();
    let by = Duration::from_secs(40);
    rig.phone(0)
        .fault(Fault::from(Injection::Slow { by }).on(CommandKind::Tap));
    let mut client = AutomationServiceClient::new(channel);
    let reply = client.tap(tap(rig.udid(0), "pinged")).await.unwrap();
    clean(reply.into_inner().receipt, "pinged");
    assert_eq!(effects(&rig.phone(0), "pinged").len(), 1);
    drop((client, raw));
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_reads_nothing_holds_no_more_than_its_streams() {
    const STREAMS: usize = 4;
    let mut scenario = Scenario::fleet(1).scaled(0.1);
    // Some hundred kilobytes: more than is under way to who does not read.
    scenario.phones[0].screen.noise = true;
    scenario.phones[0].screen.scale = 1;
    let rig = Rig::configured(scenario, |config| {
        config.server.max_concurrent_streams = u32::try_from(STREAMS).unwrap().try_into().unwrap();
    })
    .await;
    let (phone, udid) = (rig.phone(0), rig.udid(0));
    let lazy = Endpoint::from_shared(rig.url())
        .unwrap()
        .initial_stream_window_size(64 << 10)
        .initial_connection_window_size(64 << 10)
        .connect()
        .await
        .unwrap();
    gateway_answers(lazy.clone()).await;
    let mut calls = JoinSet::new();
    for n in 0..3 * STREAMS {
        let mut client = AutomationServiceClient::new(lazy.clone());
        let request = pb::CaptureScreenshotRequest {
            device: udid.clone(),
            command_id: Some(format!("unread-{n}")),
            lease: None,
        };
        calls.spawn(async move { client.capture_screenshot(request).await });
    }
    let mut unread = Vec::new();
    while unread.len() < STREAMS {
        let call = soon("a picture's beginning", calls.join_next()).await;
        unread.push(call.unwrap().unwrap().unwrap());
    }

    // Whoever reads is served as ever.
    for n in 0..3 {
        let id = format!("read-{n}");
        let receipt = plain::send(&rig, &udid, CommandKind::Screenshot, &id).await;
        clean(Some(receipt.unwrap()), &id);
        let id = format!("tap-{n}");
        let receipt = plain::send(&rig, &udid, CommandKind::Tap, &id).await;
        clean(Some(receipt.unwrap()), &id);
    }
    // A picture that takes too long is asked for again: by their ids.
    let arrivals = phone.arrivals();
    let pictures: BTreeSet<_> = arrivals
        .iter()
        .filter(|arrival| arrival.kind == CommandKind::Screenshot)
        .map(|arrival| arrival.command_id.as_ref().unwrap().as_str())
        .collect();
    let taken = STREAMS + 3;
    assert_eq!(pictures.len(), taken, "none is taken for a stream to come");
    assert!(calls.try_join_next().is_none());

    // With the streams gone, the connection is as good as new.
    drop((unread, calls));
    let mut client = AutomationServiceClient::new(lazy);
    let reply = client.tap(tap(udid, "at-last")).await.unwrap();
    clean(reply.into_inner().receipt, "at-last");
    drop(client);
    rig.stop().await;
}
