//! Screenshots: a header, then the picture in chunks. At the phones' own pace,
//! since a picture is drawn by real work.

use fleetgate_proto::v1 as pb;
use fleetgate_proto::v1::capture_screenshot_response::Part;
use fleetgate_runner::CommandKind;
use fleetgate_simulator::Scenario;
use fleetgate_tests::Rig;
use fleetgate_tests::facts::{clean, on_record};
use serde_json::json;

/// The most bytes in one chunk.
const CHUNK: usize = 256 * 1024;

async fn capture(rig: &Rig, command_id: &str) -> (pb::ScreenshotHeader, Vec<Vec<u8>>) {
    let request = pb::CaptureScreenshotRequest {
        device: rig.udid(0),
        command_id: Some(command_id.to_owned()),
        lease: None,
    };
    let mut parts = rig
        .automation()
        .capture_screenshot(request)
        .await
        .unwrap()
        .into_inner();
    let Some(Part::Header(header)) = parts.message().await.unwrap().unwrap().part else {
        panic!("the header comes first");
    };
    let mut chunks = Vec::new();
    while let Some(part) = parts.message().await.unwrap() {
        let Some(Part::Chunk(chunk)) = part.part else {
            panic!("one header, then chunks")
        };
        chunks.push(chunk.to_vec());
    }
    (header, chunks)
}

/// Width, height and pixels.
fn decode(png: &[u8]) -> (u32, u32, Vec<u8>) {
    let mut reader = png::Decoder::new(std::io::Cursor::new(png))
        .read_info()
        .unwrap();
    let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
    let info = reader.next_frame(&mut pixels).unwrap();
    (info.width, info.height, pixels)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_screenshot_is_the_picture_that_the_phone_shows() {
    let rig = Rig::start(Scenario::fleet(1)).await;
    let (phone, udid) = (rig.phone(0), rig.udid(0));
    let shown = phone.with_screen(|screen| screen.screenshot());

    let (header, chunks) = capture(&rig, "picture").await;

    let png = chunks.concat();
    assert_eq!(header.media_type, "image/png");
    assert_eq!(header.size_bytes, u64::try_from(png.len()).unwrap());
    assert_eq!((header.width, header.height), (786, 1704));
    let (width, height, pixels) = decode(&png);
    assert_eq!((width, height), (786, 1704));
    assert!(pixels == decode(&shown).2, "the pixels of the phone");
    let receipt = clean(header.receipt, "picture");
    on_record(&rig, &udid, CommandKind::Screenshot, &receipt, json!({})).await;
    assert_eq!(phone.effects(), []);
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_large_screenshot_comes_in_chunks_of_at_most_256_kib() {
    let mut scenario = Scenario::fleet(1);
    scenario.phones[0].screen.noise = true;
    let rig = Rig::start(scenario).await;

    let (header, chunks) = capture(&rig, "large").await;

    assert!(chunks.len() > 4, "{} chunks", chunks.len());
    let (last, others) = chunks.split_last().unwrap();
    assert!(others.iter().all(|chunk| chunk.len() == CHUNK));
    assert!(!last.is_empty() && last.len() <= CHUNK);
    let png = chunks.concat();
    assert_eq!(header.size_bytes, u64::try_from(png.len()).unwrap());
    assert_eq!(
        (decode(&png).0, decode(&png).1),
        (header.width, header.height)
    );
    clean(header.receipt, "large");
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_screenshot_shows_what_a_tap_has_changed() {
    let rig = Rig::start(Scenario::fleet(1)).await;
    let (_, before) = capture(&rig, "before").await;
    fleetgate_tests::screen::open(&rig.phone(0));
    let (_, after) = capture(&rig, "after").await;
    assert!(decode(&before.concat()).2 != decode(&after.concat()).2);
    rig.stop().await;
}
