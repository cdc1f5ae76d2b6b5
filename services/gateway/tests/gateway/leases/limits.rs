//! What may be asked for of a lease, as it is configured, and how often.

use fleetgate_identity::Role;
use fleetgate_proto::v1 as pb;
use fleetgate_proto::v1::lease_service_client::LeaseServiceClient;
use prost_types::Duration;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Code;

use super::scope::by;
use super::{ask, fields, these};
use crate::guarded::{Guarded, everywhere, soon};
use crate::support::{reason, start};

/// So many seconds.
fn seconds(seconds: i64) -> Duration {
    Duration { seconds, nanos: 0 }
}

#[tokio::test]
async fn a_lease_lives_lasts_and_waits_no_longer_than_the_gateway_lets_it() {
    let more = "[leases]\nttl = \"5s\"\nmax_ttl = \"10s\"\nmax_duration = \"20s\"\n\
                longest_duration = \"30s\"\nqueue_timeout = \"0s\"\nlongest_queue_timeout = \"40s\"";
    let running = start(more).await;
    let wish = |terms: [Option<i64>; 3]| {
        let [ttl, max_duration, queue_timeout] = terms.map(|term| term.map(seconds));
        pb::CreateLeaseRequest {
            ttl,
            max_duration,
            queue_timeout,
            ..these(&["left"])
        }
    };
    let longest = wish([Some(10), Some(30), Some(40)]);
    let lease = ask(&running, longest).await.unwrap();
    let terms = [lease.ttl, lease.max_duration, lease.queue_timeout];
    assert_eq!(terms, [10, 30, 40].map(|term| Some(seconds(term))));
    for (field, longer) in [
        ("ttl", wish([Some(11), None, None])),
        ("max_duration", wish([None, Some(31), None])),
        ("queue_timeout", wish([None, None, Some(41)])),
    ] {
        let refused = ask(&running, longer).await.unwrap_err();
        assert_eq!(refused.code(), Code::InvalidArgument);
        assert_eq!(fields(&refused), [field]);
    }
    let mut client = LeaseServiceClient::new(running.channel.clone());
    for (field, ttl, max_duration) in [
        ("ttl", Some(seconds(11)), None),
        ("max_duration", None, Some(seconds(31))),
    ] {
        let update = pb::UpdateLeaseRequest {
            lease_id: lease.id.clone(),
            ttl,
            max_duration,
            ..pb::UpdateLeaseRequest::default()
        };
        let refused = client.update_lease(update).await.unwrap_err();
        assert_eq!(fields(&refused), [field]);
    }
    drop(client);
    running.gateway.shutdown().await;
}

#[tokio::test]
async fn the_highest_priorities_are_those_of_the_configuration() {
    let more = "leases.operator_priority = 3\nleases.admin_priority = 7";
    let callers = [
        ("operator", everywhere(Role::Operator)),
        ("admin", everywhere(Role::Admin)),
    ];
    let guarded = Guarded::knowing(callers, more).await;
    for (who, highest) in [("operator", 3), ("admin", 7)] {
        let mut client = by(&guarded, who).await;
        for (asked, expected) in [(highest + 1, highest), (highest - 1, highest - 1)] {
            let wish = pb::CreateLeaseRequest {
                priority: asked,
                ..these(&["left"])
            };
            let made = client.create_lease(wish).await.unwrap().into_inner();
            assert_eq!(made.lease.unwrap().priority, expected, "{who}");
        }
    }
    guarded.gateway.shutdown().await;
}

#[tokio::test]
async fn every_message_of_a_stream_of_renewals_counts_as_a_call() {
    let more = "limits.calls_per_second = 1\nlimits.call_burst = 5";
    let callers = [("one", everywhere(Role::Operator))];
    let guarded = Guarded::knowing(callers, more).await;
    let mut client = by(&guarded, "one").await;
    let made = client.create_lease(these(&["left"])).await.unwrap();
    let lease = made.into_inner().lease.unwrap();
    let (renewals, sent) = mpsc::channel(1);
    let kept = client.keep_alive(ReceiverStream::new(sent)).await;
    let mut kept = kept.unwrap().into_inner();
    let mut limited = None;
    // A second may pass in which one more is taken.
    for _ in 0..50 {
        let renewal = pb::KeepAliveRequest {
            lease_id: lease.id.clone(),
            epoch: 0,
        };
        renewals.send(renewal).await.unwrap();
        if let Err(status) = soon("an answer", kept.message()).await {
            limited = Some(status);
            break;
        }
    }
    let expected = (Code::ResourceExhausted, "RATE_LIMITED".to_owned());
    assert_eq!(reason(&limited.unwrap()), expected);
    let end = soon("the end", kept.message()).await;
    assert!(matches!(end, Ok(None) | Err(_)));
    drop((client, kept));
    guarded.gateway.shutdown().await;
}
