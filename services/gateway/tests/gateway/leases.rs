//! Leases of phones that are not there: they wait, and can be had no sooner.

use fleetgate_proto::v1 as pb;
use fleetgate_proto::v1::automation_service_client::AutomationServiceClient;
use fleetgate_proto::v1::create_lease_request::Wants;
use fleetgate_proto::v1::lease_service_client::LeaseServiceClient;
use fleetgate_proto::v1::{DeviceObstacle, LeaseChange, LeaseState};
use tonic::transport::Channel;
use tonic::{Code, Status};
use tonic_types::StatusExt;

use crate::support::{DEVICE, PORTLESS, Running, nowhere, reason, start, start_with, tap};

mod limits;
mod listing;
mod scope;

fn client(running: &Running) -> LeaseServiceClient<Channel> {
    LeaseServiceClient::new(running.channel.clone())
}

fn these(devices: &[&str]) -> pb::CreateLeaseRequest {
    pb::CreateLeaseRequest {
        wants: Some(Wants::DeviceList(pb::DeviceList {
            devices: devices.iter().map(|name| (*name).to_owned()).collect(),
        })),
        ..pb::CreateLeaseRequest::default()
    }
}

async fn ask(running: &Running, wish: pb::CreateLeaseRequest) -> Result<pb::Lease, Status> {
    let created = client(running).create_lease(wish).await?;
    Ok(created.into_inner().lease.unwrap())
}

fn fields(status: &Status) -> Vec<String> {
    let details = status.get_error_details();
    let wrong = details.bad_request().unwrap().field_violations.iter();
    wrong.map(|wrong| wrong.field.clone()).collect()
}

#[tokio::test]
async fn a_lease_of_a_phone_that_is_not_there_waits_and_says_what_for() {
    let running = start("").await;
    let lease = ask(&running, these(&["left"])).await.unwrap();
    assert_eq!(lease.state(), LeaseState::Queued);
    assert_eq!((lease.epoch, lease.queue_position()), (0, 1));
    assert_eq!(lease.owner, "anonymous");
    let id = || lease.id.clone();
    let explained = client(&running)
        .explain_lease(pb::ExplainLeaseRequest { lease_id: id() })
        .await
        .unwrap()
        .into_inner();
    assert_eq!(explained.devices[0].device, DEVICE);
    assert_eq!(explained.devices[0].obstacle(), DeviceObstacle::Detached);
    assert_eq!(explained.summary, "1 matches, 1 wanted: 1 unplugged");

    let mut watch = client(&running)
        .watch_lease(pb::WatchLeaseRequest { lease_id: id() })
        .await
        .unwrap()
        .into_inner();
    let first = watch.message().await.unwrap().unwrap();
    assert_eq!(first.change(), LeaseChange::Snapshot);
    let released = client(&running)
        .release_lease(pb::ReleaseLeaseRequest { lease_id: id() })
        .await
        .unwrap()
        .into_inner();
    assert_eq!(released.lease.unwrap().state(), LeaseState::Cancelled);
    let last = watch.message().await.unwrap().unwrap();
    assert_eq!(last.change(), LeaseChange::Ended);
    assert!(watch.message().await.unwrap().is_none());
    running.gateway.shutdown().await;
}

#[tokio::test]
async fn two_spellings_of_one_phone_are_one_phone_and_a_name_of_none_is_unknown() {
    let running = start("").await;
    let spelt = DEVICE.to_ascii_lowercase().replace('-', "");
    for twice in [["left", DEVICE], [DEVICE, &spelt], ["left", "left"]] {
        let refused = ask(&running, these(&twice)).await.unwrap_err();
        assert_eq!(refused.code(), Code::InvalidArgument, "{twice:?}");
        assert_eq!(fields(&refused), ["device_list.devices"]);
    }
    let lease = ask(&running, these(&[&spelt, PORTLESS])).await.unwrap();
    let Some(pb::lease::Wants::DeviceList(list)) = lease.wants else {
        panic!("{lease:?}");
    };
    assert_eq!(list.devices, [PORTLESS, DEVICE]);
    let refused = ask(&running, these(&["elsewhere"])).await.unwrap_err();
    let expected = (Code::NotFound, "DEVICE_UNKNOWN".to_owned());
    assert_eq!(reason(&refused), expected);
    running.gateway.shutdown().await;
}

#[tokio::test]
async fn a_watch_and_a_stream_of_renewals_end_with_the_gateway_and_the_lease_does_not() {
    let running = start("").await;
    let lease = ask(&running, these(&["left"])).await.unwrap();
    let lease_id = lease.id.clone();
    let request = pb::WatchLeaseRequest { lease_id };
    let watch = client(&running).watch_lease(request).await;
    let mut watch = watch.unwrap().into_inner();
    watch.message().await.unwrap().unwrap();
    let renewal = pb::KeepAliveRequest {
        lease_id: lease.id.clone(),
        epoch: 0,
    };
    let (renewals, sent) = tokio::sync::mpsc::channel(1);
    let sent = tokio_stream::wrappers::ReceiverStream::new(sent);
    let kept = client(&running).keep_alive(sent).await;
    let mut kept = kept.unwrap().into_inner();
    renewals.send(renewal).await.unwrap();
    let renewed = kept.message().await.unwrap().unwrap().lease.unwrap();
    assert_eq!(renewed.state(), LeaseState::Queued);

    running.gateway.shutdown().await;
    let ended = [
        watch.message().await.unwrap_err(),
        kept.message().await.unwrap_err(),
    ];
    for status in ended {
        let expected = (Code::Unavailable, "GATEWAY_DRAINING".to_owned());
        assert_eq!(reason(&status), expected);
    }
}

#[tokio::test]
async fn where_leases_are_required_a_command_without_one_is_refused_and_metrics_count_leases() {
    let more = "[leases]\nrequired = true\n[admin]\nlisten = \"127.0.0.1:0\"";
    let running = start_with(more, nowhere(), 0.01).await;
    let mut automation = AutomationServiceClient::new(running.channel.clone());
    let refused = automation.tap(tap("left", "without")).await.unwrap_err();
    let expected = (Code::FailedPrecondition, "LEASE_REQUIRED".to_owned());
    assert_eq!(reason(&refused), expected);
    let lease = ask(&running, these(&["left"])).await.unwrap();
    let early = pb::TapRequest {
        lease: Some(pb::LeaseRef {
            id: lease.id,
            epoch: 1,
        }),
        ..tap("left", "early")
    };
    let refused = automation.tap(early).await.unwrap_err();
    let expected = (Code::FailedPrecondition, "LEASE_NOT_ACTIVE".to_owned());
    assert_eq!(reason(&refused), expected);
    let (_, metrics) = crate::admin::plain(&running, "/metrics").await;
    let waits = "fleetgate_leases{state=\"QUEUED\"} 1";
    assert!(metrics.contains(waits), "{metrics}");
    running.gateway.shutdown().await;
}
