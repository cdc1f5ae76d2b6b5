//! Lists of leases, and what is on record of what was not told or given.

use fleetgate_identity::Role;
use fleetgate_proto::v1 as pb;
use prost::Message;
use tonic::Code;

use super::scope::by;
use super::{ask, client, these};
use crate::guarded::{Guarded, RACK_B, detail, in_rack};
use crate::support::{reason, start};

/// What a wish says of itself, in some 7 KB.
fn much() -> impl Iterator<Item = (String, String)> {
    (0..28).map(|number| (format!("k{number:02}"), "v".repeat(250)))
}

#[tokio::test]
async fn a_list_is_cut_where_the_reply_is_full_and_goes_on_from_there() {
    const LIMIT: usize = 40_000;
    let running = start(&format!("max_reply_bytes = {LIMIT}")).await;
    let mut made = Vec::new();
    for _ in 0..12 {
        let wish = pb::CreateLeaseRequest {
            context: much().collect(),
            ..these(&["left"])
        };
        made.push(ask(&running, wish).await.unwrap().id);
    }
    made.reverse();
    // As many as there are, more than fit, and fewer.
    for (page_size, pages_expected) in [(0, 3), (7, 3), (3, 4)] {
        let (mut listed, mut pages) = (Vec::new(), 0);
        let mut page_token = String::new();
        loop {
            let request = pb::ListLeasesRequest {
                page_size,
                page_token,
                ..pb::ListLeasesRequest::default()
            };
            let page = client(&running).list_leases(request).await.unwrap();
            let page = page.into_inner();
            assert!(page.encoded_len() <= LIMIT);
            assert!(!page.leases.is_empty());
            listed.extend(page.leases.into_iter().map(|lease| lease.id));
            pages += 1;
            page_token = page.next_page_token;
            if page_token.is_empty() {
                break;
            }
        }
        assert_eq!(listed, made, "{page_size}");
        assert_eq!(pages, pages_expected, "{page_size}");
    }
    running.gateway.shutdown().await;
}

#[tokio::test]
async fn a_lease_too_many_and_a_phone_that_is_hidden_are_denials_on_record() {
    let callers = [("bob", vec![in_rack(Role::Operator, "a")])];
    let guarded = Guarded::knowing(callers, "limits.max_open_leases = 1").await;
    let mut bob = by(&guarded, "bob").await;
    bob.create_lease(these(&["left"])).await.unwrap();
    let refused = bob.create_lease(these(&["left"])).await.unwrap_err();
    let expected = (Code::ResourceExhausted, "QUOTA_EXCEEDED".to_owned());
    assert_eq!(reason(&refused), expected);
    let of_hidden = pb::ListLeasesRequest {
        device: RACK_B.to_owned(),
        ..pb::ListLeasesRequest::default()
    };
    let refused = bob.list_leases(of_hidden).await.unwrap_err();
    let expected = (Code::NotFound, "DEVICE_UNKNOWN".to_owned());
    assert_eq!(reason(&refused), expected);
    let denials = guarded.denials(2).await;
    let told: Vec<_> = denials
        .iter()
        .map(|denial| (denial.who.as_str(), detail(denial, "reason").unwrap()))
        .collect();
    let told: Vec<_> = told.iter().map(|(who, why)| (*who, why.as_str())).collect();
    let bob_s = "token:bob";
    assert_eq!(
        told,
        [(bob_s, "QUOTA_EXCEEDED"), (bob_s, "DEVICE_OUT_OF_SCOPE")]
    );
    assert!(detail(&denials[0], "address").is_some());
    drop(bob);
    guarded.gateway.shutdown().await;
}
