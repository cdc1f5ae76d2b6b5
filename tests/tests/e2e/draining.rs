//! The end of a gateway while there is work: what is under way ends and is
//! told, what cannot end in time is on record, and nothing new is let in.

use std::time::Duration;

use fleetgate_gateway::Drained;
use fleetgate_proto::v1 as pb;
use fleetgate_proto::v1::automation_service_client::AutomationServiceClient;
use fleetgate_proto::v1::{Effect, Fate};
use fleetgate_runner::CommandKind;
use fleetgate_simulator::{Fault, Injection, Scenario};
use fleetgate_tests::facts::{clean, effects};
use fleetgate_tests::outcome::Outcome;
use fleetgate_tests::raw::{GOAWAY, Raw};
use fleetgate_tests::{APP, Rig, pause, plain, refused, soon};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tonic::transport::Channel;
use tonic::{Code, Response, Status, Streaming};
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;
use tonic_health::pb::{HealthCheckRequest, HealthCheckResponse};

type Taps = JoinSet<(String, Result<Response<pb::TapResponse>, Status>)>;

fn tap(taps: &mut Taps, channel: &Channel, device: &str, command_id: &str) {
    let mut client = AutomationServiceClient::new(channel.clone());
    let id = command_id.to_owned();
    let request = pb::TapRequest {
        device: device.to_owned(),
        command_id: Some(id.clone()),
        app_bundle_id: APP.to_owned(),
        point: plain::absolute(20.0, 30.0),
        ..pb::TapRequest::default()
    };
    taps.spawn(async move { (id, client.tap(request).await) });
}

/// A tap that comes too late. tonic's channel calls a request CANCELLED that it
/// held for a connection when that was told to go away; what it is asked for
/// next, it asks the gateway.
async fn late(channel: &Channel, device: &str) -> Status {
    let mut taps = JoinSet::new();
    loop {
        tap(&mut taps, channel, device, "late");
        let (_, reply) = taps.join_next().await.unwrap().unwrap();
        let status = reply.unwrap_err();
        if status.code() != Code::Cancelled {
            return status;
        }
    }
}

async fn queued(rig: &Rig, wanted: u32) {
    soon("a queue", async {
        loop {
            let device = rig.udid(0);
            let request = pb::GetDeviceRequest { device };
            let found = rig.fleet().get_device(request).await.unwrap();
            let device = found.into_inner().device.unwrap();
            if device.queued_commands == wanted && device.command_in_flight.is_some() {
                return;
            }
            pause().await;
        }
    })
    .await;
}

fn slow(by: u64) -> Fault {
    let by = Duration::from_secs(by);
    Fault::from(Injection::Slow { by })
}

async fn watch(channel: Channel) -> Streaming<HealthCheckResponse> {
    let request = HealthCheckRequest::default();
    let mut health = HealthClient::new(channel);
    health.watch(request).await.unwrap().into_inner()
}

async fn next(watch: &mut Streaming<HealthCheckResponse>) -> Option<ServingStatus> {
    let message = soon("health", watch.message()).await.unwrap();
    message.map(|message| message.status())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_under_way_ends_and_is_told_and_nothing_new_is_let_in() {
    let rig = Rig::start(Scenario::fleet(1).scaled(0.05)).await;
    let (phone, udid, url) = (rig.phone(0), rig.udid(0), rig.url());
    phone.fault(slow(60).on(CommandKind::Tap));
    let channel = rig.connect().await;
    let mut taps = JoinSet::new();
    tap(&mut taps, &channel, &udid, "in-flight");
    phone.wait_until(|phone| phone.in_flight == 1).await;
    for n in 1..=3 {
        tap(&mut taps, &channel, &udid, &format!("waiting-{n}"));
        queued(&rig, n).await;
    }
    let mut health = watch(rig.connect().await).await;
    assert_eq!(next(&mut health).await, Some(ServingStatus::Serving));

    let meanwhile = async {
        assert_eq!(next(&mut health).await, Some(ServingStatus::NotServing));
        // The listener goes with the drain; its closing is not announced.
        let address = url.replace("http://", "");
        soon("a closed door", async {
            while TcpStream::connect(&address).await.is_ok() {
                pause().await;
            }
        })
        .await;
        let late = late(&channel, &udid).await;
        assert_eq!(late.code(), Code::Unavailable, "{late:?}");
        assert_eq!(
            phone.report().in_flight,
            1,
            "all that while the first goes on"
        );
        while let Some(answer) = taps.join_next().await {
            let (id, reply) = answer.unwrap();
            clean(reply.unwrap().into_inner().receipt, &id);
        }
        assert_eq!(
            next(&mut health).await,
            None,
            "the stream ends with a status"
        );
    };
    let (paused, ()) = tokio::join!(rig.pause(), meanwhile);
    assert_eq!(paused.drained, Drained::Clean);
    assert_eq!(phone.effects().len(), 4);

    let rig = paused.resume().await;
    for id in ["in-flight", "waiting-1", "waiting-2", "waiting-3"] {
        assert_eq!(effects(&phone, id).len(), 1, "{id}");
        let row = rig.find(id).await.unwrap();
        assert_eq!(
            (row.fate(), row.effect()),
            (Fate::Completed, Effect::Applied)
        );
    }
    assert_eq!(rig.find("late").await, None);
    rig.stop().await;
}

/// What was unknown when the gateway ended is learnt from the phone by the next
/// one, and both words stay on record.
async fn assert_learnt(rig: &Rig, id: &str) {
    let request = pb::GetCommandRequest {
        command_id: id.to_owned(),
    };
    let found = soon("the fate", async {
        loop {
            let found = rig.ledger().get_command(request.clone()).await.unwrap();
            let found = found.into_inner();
            if found.command.as_ref().unwrap().fate() == Fate::Completed {
                return found;
            }
            pause().await;
        }
    })
    .await;
    assert!(found.command.unwrap().recovered);
    let words: Vec<_> = found.history.iter().map(pb::FateChange::fate).collect();
    assert_eq!(words, [Fate::Unknown, Fate::Completed]);
    assert_eq!(found.history[0].reason(), "GATEWAY_DRAINING");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_outlasts_the_drain_is_given_up_and_on_record_as_what_it_is() {
    const SENT: Outcome = Outcome {
        reason: "GATEWAY_DRAINING",
        hint: false,
        ..Outcome::unknown()
    };
    const UNSENT: Outcome = Outcome {
        attempts: 0,
        hint: false,
        ..Outcome::not_sent(Code::Unavailable, "GATEWAY_DRAINING")
    };
    let rig = Rig::configured(Scenario::fleet(1).scaled(0.1), |config| {
        config.server.drain_timeout = Duration::from_millis(300);
    })
    .await;
    let (phone, udid) = (rig.phone(0), rig.udid(0));
    phone.fault(slow(60).on(CommandKind::Tap));
    let channel = rig.connect().await;
    let mut taps = JoinSet::new();
    tap(&mut taps, &channel, &udid, "sent");
    phone.wait_until(|phone| phone.in_flight == 1).await;
    tap(&mut taps, &channel, &udid, "unsent");
    queued(&rig, 1).await;

    let paused = soon("the end", rig.pause()).await;
    assert_eq!(
        effects(&phone, "sent").len(),
        0,
        "the tap outlasts the gateway"
    );
    assert_eq!(paused.drained, Drained::Clean, "everybody has been told");
    let mut told = taps.join_all().await;
    told.sort_by(|one, other| one.0.cmp(&other.0));
    let [(_, sent), (_, unsent)] = <[_; 2]>::try_from(told).unwrap();
    let (sent, unsent) = (refused(sent), refused(unsent));
    phone.wait_until(|phone| phone.effects_total == 1).await;

    let rig = paused.resume().await;
    SENT.assert_refusal(&udid, "sent", &sent);
    assert_learnt(&rig, "sent").await;
    UNSENT
        .assert(&rig, &udid, CommandKind::Tap, "unsent", &unsent)
        .await;
    assert_eq!(effects(&phone, "sent").len(), 1, "and is never sent again");
    assert_eq!(effects(&phone, "unsent").len(), 0);
    let receipt = plain::send(&rig, &udid, CommandKind::Tap, "after").await;
    clean(Some(receipt.unwrap()), "after");
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_connection_is_told_to_go_and_every_watcher_that_it_is_over() {
    let rig = Rig::plain(1).await;
    let mut health = watch(rig.connect().await).await;
    assert_eq!(next(&mut health).await, Some(ServingStatus::Serving));
    let mut raw = Raw::connect(&rig).await;
    // Its settings: it has been accepted, and does not wait in a backlog.
    soon("a frame", raw.frame()).await.unwrap();
    let ending = async {
        assert_eq!(next(&mut health).await, Some(ServingStatus::NotServing));
        assert_eq!(next(&mut health).await, None);
    };
    let told = async {
        while soon("a frame", raw.frame()).await.unwrap().kind != GOAWAY {}
        // A client that stayed and answered nothing would be cut in the end.
        drop(raw);
    };
    let (drained, (), ()) = tokio::join!(rig.stop(), ending, told);
    assert_eq!(drained, Drained::Clean);
}
