//! What a wait makes of how a lease is.

use super::*;

fn lease(state: LeaseState) -> Lease {
    Lease {
        id: "l-1".to_owned(),
        state: state.into(),
        ..Lease::default()
    }
}

#[test]
fn a_wish_is_waited_for_until_it_is_granted_or_has_ended() {
    for waits in [LeaseState::Scheduled, LeaseState::Queued] {
        assert!(granted(&lease(waits)).unwrap().is_none());
    }
    let there = granted(&lease(LeaseState::Active)).unwrap();
    assert!(matches!(there, Some(Acquired::Granted(_))));
    for ended in [
        LeaseState::Draining,
        LeaseState::Expired,
        LeaseState::Revoked,
        LeaseState::Cancelled,
        LeaseState::Unsatisfiable,
        LeaseState::Released,
    ] {
        assert!(granted(&lease(ended)).is_err(), "{ended:?}");
    }
}

#[test]
fn a_wish_that_came_to_nothing_says_why() {
    let ended = Lease {
        end_reason: Some("REVOKED".to_owned()),
        ended_by: Some("token:ada".to_owned()),
        end_detail: Some("the rack moves".to_owned()),
        ..lease(LeaseState::Revoked)
    };
    assert_eq!(
        granted(&ended).unwrap_err().to_string(),
        "the lease l-1 was not granted: REVOKED by token:ada: the rack moves"
    );
}

#[test]
fn progress_tells_the_place_and_what_is_in_the_way() {
    let waits = Lease {
        queue_position: Some(2),
        ..lease(LeaseState::Queued)
    };
    assert_eq!(
        waiting(&waits, Some("3 match, 1 wanted: 3 leased")),
        "waiting for the lease l-1, place 2 in line: 3 match, 1 wanted: 3 leased"
    );
    assert_eq!(
        waiting(&lease(LeaseState::Scheduled), Some("")),
        "waiting for the lease l-1"
    );
}
