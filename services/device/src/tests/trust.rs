//! Whether a phone trusts its host.

use std::time::Duration;

use fleetgate_usbmux::{Event, MuxDeviceId, PairRecord, Reply, Request};
use tokio::time::Instant;

use super::daemon::{ALICE, BOB, udid, usb};
use super::rack::Rack;

const B: usize = 1;

/// A daemon's answer to the request with this tag.
type Answer = Box<dyn Fn(u32) -> Vec<u8>>;

#[tokio::test(start_paused = true)]
async fn trust_is_told_to_whoever_watches() {
    let mut rack = Rack::with([&[usb(1, ALICE)], &[usb(1, BOB)]]).await;
    let before = rack.find(BOB, |_| true).await.paired_event;
    for _ in 0..2 {
        rack.listeners[B]
            .events(&[Event::Paired(MuxDeviceId(1))])
            .await;
        rack.find(BOB, |at| at.paired_event != before).await;
    }
    assert_eq!(rack.find(ALICE, |_| true).await.paired_event, 0);
}

#[tokio::test(start_paused = true)]
async fn trust_is_asked_of_the_host_that_has_the_phone_under_the_name_it_uses() {
    const SPELT: &str = "00008020-00060d691ad8003a";
    let mut rack = Rack::with([&[usb(1, ALICE)], &[usb(1, SPELT)]]).await;
    let record = Reply::PairRecord(PairRecord(b"keys"[..].into()));
    let empty = Reply::PairRecord(PairRecord(b""[..].into()));
    let absent = b"<plist><dict/></plist>".to_vec();
    let encode = |reply: Reply| move |tag| reply.encode(tag).unwrap().to_vec();
    let header = move |tag: u32| {
        let length = u32::try_from(16 + absent.len()).unwrap();
        let header = [length, 1, 8, tag].into_iter().flat_map(u32::to_le_bytes);
        header.chain(absent.clone()).collect()
    };
    let answers: [(Answer, Option<bool>); 7] = [
        (Box::new(encode(record)), Some(true)),
        (Box::new(encode(empty)), Some(false)),
        (Box::new(encode(Reply::Result(2.into()))), Some(false)),
        (Box::new(header), Some(false)),
        (Box::new(encode(Reply::Result(1.into()))), None),
        (Box::new(encode(Reply::Buid("buid".to_owned()))), None),
        (Box::new(|_| b"garbage that is no packet".to_vec()), None),
    ];
    for (answer, expected) in answers {
        let device = udid(BOB);
        let (paired, ()) = tokio::join!(rack.hosts.paired(&device), async {
            let mut peer = rack.daemons[B].accept().await;
            let asked = peer.request().await;
            assert_eq!(
                asked,
                Request::ReadPairRecord {
                    id: SPELT.to_owned()
                }
            );
            peer.raw(&answer(peer.tag)).await;
        });
        assert_eq!(paired, expected);
    }
    // A daemon that is silent cannot say, and one that is away neither.
    let began = Instant::now();
    let device = udid(BOB);
    let (paired, _silent) = tokio::join!(rack.hosts.paired(&device), rack.daemons[B].accept());
    assert_eq!((paired, began.elapsed()), (None, Duration::from_secs(5)));
    rack.kill(B).await;
    assert_eq!(rack.hosts.paired(&udid(BOB)).await, None);
}
