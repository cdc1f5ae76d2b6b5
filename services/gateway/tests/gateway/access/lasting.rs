//! Streams, whose callers are let in once and may go on for days.

use std::time::Duration;

use fleetgate_identity::Role;
use fleetgate_proto::v1 as pb;
use fleetgate_proto::v1::lease_service_client::LeaseServiceClient;
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_stream::wrappers::ReceiverStream;
use tonic::metadata::AsciiMetadataValue;
use tonic::{Code, Request, Status};

use crate::guarded::{Guarded, config, everywhere, soon, token, tokens};
use crate::support::reason;

/// Within what a stream ends whose caller is not let in any more, on a host that
/// has other things to do.
const A_FEW_SECONDS: Duration = Duration::from_secs(10);

#[tokio::test]
async fn streams_end_with_the_token_that_they_were_opened_with() {
    let directory = tempfile::tempdir().unwrap();
    let file = tokens(&directory);
    let (info, says) = token(&file, "ann", everywhere(Role::Operator), None);
    // How often a stream says something is another matter.
    let seldom = "server.heartbeat_interval = \"1h\"";
    let guarded = Guarded::start_in(directory, |directory| config(directory, seldom)).await;
    let mut ann = guarded.by(&says).await;
    let watch = ann.fleet.watch_fleet(pb::WatchFleetRequest::default());
    let mut watch = watch.await.unwrap().into_inner();
    soon("the fleet", watch.message()).await.unwrap().unwrap();

    let value: AsciiMetadataValue = says.parse().unwrap();
    let channel = guarded.channel().await;
    let mut leases = LeaseServiceClient::with_interceptor(channel, move |mut call: Request<()>| {
        call.metadata_mut().insert("authorization", value.clone());
        Ok::<_, Status>(call)
    });
    let wants = pb::create_lease_request::Wants::DeviceList(pb::DeviceList {
        devices: vec!["left".to_owned()],
    });
    let wish = pb::CreateLeaseRequest {
        wants: Some(wants),
        ..pb::CreateLeaseRequest::default()
    };
    let lease = leases.create_lease(wish).await.unwrap().into_inner();
    let renewal = pb::KeepAliveRequest {
        lease_id: lease.lease.unwrap().id,
        epoch: 0,
    };
    let (renewals, sent) = mpsc::channel(1);
    let kept = leases.keep_alive(ReceiverStream::new(sent)).await;
    let mut kept = kept.unwrap().into_inner();
    renewals.send(renewal).await.unwrap();
    soon("a renewal", kept.message()).await.unwrap().unwrap();

    file.revoke(info.id.as_str()).unwrap();
    let told = async {
        loop {
            match watch.message().await {
                Ok(Some(_)) => {}
                Ok(None) => panic!("it ended without a word"),
                Err(status) => break status,
            }
        }
    };
    let ended = timeout(A_FEW_SECONDS, async { tokio::join!(told, kept.message()) });
    let (told, kept_on) = ended.await.unwrap();
    let invalid = (Code::Unauthenticated, "CREDENTIALS_INVALID".to_owned());
    assert_eq!(reason(&told), invalid);
    assert_eq!(reason(&kept_on.unwrap_err()), invalid);
    drop((ann, watch, leases, kept, renewals));
    let entries = guarded.end().await;
    let mut paths: Vec<_> = entries
        .iter()
        .map(|entry| {
            assert_eq!(entry.operation.who, "token:ann");
            assert_eq!(entry.operation.detail["why"], "the token was revoked");
            entry.operation.target.as_deref().unwrap()
        })
        .collect();
    paths.sort_unstable();
    let expected = [
        "/fleetgate.v1.FleetService/WatchFleet",
        "/fleetgate.v1.LeaseService/KeepAlive",
    ];
    assert_eq!(paths, expected);
}
