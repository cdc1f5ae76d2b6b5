//! The tour succeeds on a sound lab, and fails, naming the step, on one that
//! is not.

use fleetgate_simulator::Fault;
use serde_json::json;

use super::*;

async fn toured(faults: &[serde_json::Value]) -> anyhow::Result<()> {
    let kept = tempfile::tempdir()?;
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let stand = Stand::start(address, Some(kept.path().to_owned())).await?;
    for fault in faults {
        stand
            .phone()
            .fault(serde_json::from_value::<Fault>(fault.clone())?);
    }
    let server = format!("http://{}", stand.address())
        .parse()
        .map_err(|error| anyhow!("{error}"))?;
    let context = Context::known(server, Some(ANSWER));
    let toured = tour(&context, &stand).await;
    stand.end(&mut Stop::listen()?).await?;
    toured
}

#[tokio::test]
async fn on_a_sound_lab_every_step_has_its_effect() {
    toured(&[]).await.unwrap();
}

#[tokio::test]
async fn a_tap_that_never_reached_the_screen_fails_its_step() {
    let fault = json!({ "on": "tap", "inject": "reply_lost_before_execution" });
    let error = toured(&[fault]).await.unwrap_err().to_string();
    assert!(error.starts_with("step 3, tap: "), "{error}");
}

#[tokio::test]
async fn a_lost_reply_that_cannot_be_recovered_fails_its_step() {
    let fault = json!({ "on": "tap", "skip": 2, "inject": "journal_evicted" });
    let error = toured(&[fault]).await.unwrap_err().to_string();
    assert!(error.starts_with("step 6, lost reply: "), "{error}");
}

#[tokio::test]
async fn a_screen_that_cannot_be_read_fails_its_step() {
    let fault = json!({ "on": "snapshot", "times": 3, "inject": "snapshot_failed" });
    let error = toured(&[fault]).await.unwrap_err().to_string();
    assert!(error.starts_with("step 2, tree: "), "{error}");
}
