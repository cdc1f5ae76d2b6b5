//! Case 24: somebody sets the clock of the gateway's host in the middle of
//! leases. What is measured is measured by the test's own monotonic clock.

use std::time::{Duration, SystemTime};

use fleetgate_proto::v1 as pb;
use fleetgate_proto::v1::{LeaseChange, LeaseState};
use fleetgate_simulator::{Lab, Scenario};
use fleetgate_tests::connect;
use fleetgate_tests::facts::{moment, wait};
use fleetgate_tests::leasing::{self, Caller, Cast, Watching, by, seconds, span, these};
use fleetgate_tests::place::{Place, Server};
use fleetgate_tests::wall::{Wall, ahead};
use tokio::time::Instant;

/// How long everything here lasts that ends by itself.
const TERM: Duration = Duration::from_secs(3);
/// How much later a busy machine may tell of an end; an hour is more.
const LATE: Duration = Duration::from_secs(10);
/// How far two readings of one clock are apart, at the most.
const APART: Duration = Duration::from_secs(5);

/// A gateway whose wall clock can be set, and three phones.
struct Stage {
    place: Place,
    lab: Lab,
    wall: Wall,
    cast: Cast,
    server: Server,
    anna: Caller,
}

impl Stage {
    async fn set() -> Self {
        let place = Place::new();
        let lab = Lab::start(Scenario::fleet(3));
        lab.serve_unix(place.usbmuxd()).await.unwrap();
        let wall = Wall::of(&place);
        let cast = Cast::at(&place.tokens());
        let server = serve(&place, &wall).await;
        let anna = caller(&cast, &server).await;
        Self {
            place,
            lab,
            wall,
            cast,
            server,
            anna,
        }
    }

    /// Ends the gateway, sets the clock, and starts another.
    async fn restart(self, hours: i64) -> Self {
        assert_eq!(self.server.end().await, Some(0));
        self.wall.set(hours);
        let server = serve(&self.place, &self.wall).await;
        let anna = caller(&self.cast, &server).await;
        Self {
            server,
            anna,
            ..self
        }
    }

    fn udid(&self, n: usize) -> String {
        self.lab.phones()[n].udid().to_string()
    }

    async fn end(self) {
        assert_eq!(self.server.end().await, Some(0));
        self.lab.shutdown().await;
    }
}

async fn serve(place: &Place, wall: &Wall) -> Server {
    let asking = "[health]\nprobe_interval = '600s'\nfacts = false\n";
    let mut serve = place.serve_on(&place.path("ledger.db"), asking);
    wall.wear(&mut serve);
    Server::start(&mut serve).await
}

async fn caller(cast: &Cast, server: &Server) -> Caller {
    let channel = connect(&server.url).await;
    leasing::all_ready(channel.clone(), 3).await;
    cast.caller("anna", channel)
}

/// Something that ends, or begins, after [`TERM`].
struct Term {
    what: &'static str,
    watch: Watching,
    /// Before and after it began.
    begun: [Instant; 2],
}

impl Term {
    async fn of(
        what: &'static str,
        anna: &Caller,
        wish: impl FnOnce() -> pb::CreateLeaseRequest,
    ) -> Self {
        let before = Instant::now();
        let lease = anna.ask(wish()).await.unwrap();
        let begun = [before, Instant::now()];
        let watch = anna.watch(&lease.id).await;
        Self { what, watch, begun }
    }

    /// Asserts that it comes neither early nor late.
    async fn assert_in_time(mut self, change: LeaseChange) -> pb::Lease {
        let told = self.watch.until(change).await;
        let [before, after] = self.begun;
        assert!(told.at - before >= TERM, "{} came early", self.what);
        let took = told.at.saturating_duration_since(after);
        assert!(took < TERM + LATE, "{} came after {took:?}", self.what);
        told.lease
    }
}

/// Asserts that the end of a lease is told by the wall clock as it is, and what
/// is left of it is not.
#[track_caller]
fn assert_told(lease: &pb::Lease, hours: i64, left: Duration) {
    let remaining = wait(lease.remaining);
    let ran = left.checked_sub(remaining);
    assert!(ran.is_some_and(|ran| ran < LATE), "{remaining:?}");
    let shown = moment(lease.expire_time);
    let expected = ahead(hours) + remaining;
    let apart = shown.max(expected).duration_since(shown.min(expected));
    assert!(apart.unwrap() < APART, "{shown:?}, not {expected:?}");
}

/// Asserts that a lease was made by a clock that is so far ahead: without that
/// nothing is shown here.
#[track_caller]
fn assert_made(lease: &pb::Lease, hours: i64) {
    let (made, expected) = (moment(lease.create_time), ahead(hours));
    let apart = made.max(expected).duration_since(made.min(expected));
    assert!(apart.unwrap() < APART, "{made:?}, not {expected:?}");
}

/// All that ends or begins by itself, while the clock is set by `hours`.
async fn nothing_moves(hours: i64) {
    let stage = Stage::set().await;
    let (anna, udids) = (&stage.anna, [0, 1, 2].map(|n| stage.udid(n)));
    let long = pb::CreateLeaseRequest {
        ttl: seconds(3_000),
        max_duration: seconds(6_000),
        ..these(&udids[2..])
    };
    let long = anna.take(long).await;
    assert_made(&long, 0);
    let ttl = || pb::CreateLeaseRequest {
        ttl: span(TERM),
        ..these(&udids[..1])
    };
    let longest = || pb::CreateLeaseRequest {
        max_duration: span(TERM),
        ..these(&udids[1..2])
    };
    let patience = || pb::CreateLeaseRequest {
        queue_timeout: span(TERM),
        ..these(&udids[2..])
    };
    let begin = || pb::CreateLeaseRequest {
        begin_time: Some((SystemTime::now() + TERM).into()),
        ..these(&udids[2..])
    };
    let ttl = Term::of("the ttl", anna, ttl).await;
    let longest = Term::of("max_duration", anna, longest).await;
    let patience = Term::of("queue_timeout", anna, patience).await;
    let begin = Term::of("begin_time", anna, begin).await;

    stage.wall.set(hours);
    assert_told(&anna.get(&long.id).await, hours, Duration::from_secs(3_000));
    anna.tap(&udids[2], "meanwhile", by(&long)).await.unwrap();
    let ended = ttl.assert_in_time(LeaseChange::Draining).await;
    assert_eq!(ended.end_reason(), "TTL_EXPIRED");
    let ended = longest.assert_in_time(LeaseChange::Draining).await;
    assert_eq!(ended.end_reason(), "MAX_DURATION");
    let ended = patience.assert_in_time(LeaseChange::Ended).await;
    assert_eq!(ended.end_reason(), "QUEUE_TIMEOUT");
    let waits = begin.assert_in_time(LeaseChange::Queued).await;
    assert_eq!(waits.state(), LeaseState::Queued);
    // By the clock as it is now, one of the same length.
    let again = || pb::CreateLeaseRequest {
        ttl: span(TERM),
        ..these(&udids[..1])
    };
    let mut again = Term::of("the ttl after", anna, again).await;
    assert_made(&again.watch.until(LeaseChange::Snapshot).await.lease, hours);
    stage.wall.set(-hours);
    again.assert_in_time(LeaseChange::Draining).await;
    let renewed = anna.renew(&long).await.unwrap();
    assert_eq!(renewed.epoch, long.epoch);
    assert_told(&renewed, -hours, Duration::from_secs(3_000));
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wall_clock_that_is_put_forward_by_an_hour_ends_nothing_early() {
    nothing_moves(1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wall_clock_that_is_put_back_by_an_hour_ends_nothing_late() {
    nothing_moves(-1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wall_clock_that_is_set_between_two_gateways_takes_and_gives_nothing() {
    let mut stage = Stage::set().await;
    let udid = stage.udid(0);
    let wish = pb::CreateLeaseRequest {
        ttl: seconds(600),
        ..these(&[&udid])
    };
    let looked = Instant::now();
    let lease = stage.anna.take(wish).await;
    for (n, hours) in [1, -1].into_iter().enumerate() {
        stage = stage.restart(hours).await;
        let now = stage.anna.get(&lease.id).await;
        assert_eq!((now.state(), now.epoch), (LeaseState::Active, lease.epoch));
        let remaining = wait(now.remaining);
        assert!(remaining <= Duration::from_secs(600), "{remaining:?}");
        let at_least = Duration::from_secs(600).saturating_sub(looked.elapsed());
        assert!(remaining >= at_least, "{remaining:?} of {at_least:?}");
        assert_told(&now, hours, remaining);
        let id = format!("tap-{n}");
        stage.anna.tap(&udid, &id, by(&lease)).await.unwrap();
    }
    assert_eq!(stage.lab.phones()[0].effects().len(), 2);
    stage.end().await;
}
