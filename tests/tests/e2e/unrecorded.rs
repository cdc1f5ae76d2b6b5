//! A command id that is not on record: when that proves that nothing was sent.

use std::time::Duration;

use fleetgate_proto::v1 as pb;
use fleetgate_tests::lane::tap;
use fleetgate_tests::{Rig, pause, plain_lab, refused, soon};
use tonic::Code;

#[tokio::test(flavor = "multi_thread")]
async fn an_id_that_was_never_sent_is_told_from_one_that_may_have_been_pruned() {
    let look_up = async |rig: &Rig, id: &str| {
        let request = pb::GetCommandRequest {
            command_id: id.to_owned(),
        };
        rig.ledger().get_command(request).await
    };
    let rig = Rig::configured(plain_lab(1, 0.02), |config| {
        config.ledger.retention_interval = Duration::from_millis(20);
    })
    .await;
    for id in ["order-66", "0198c2f4-3c1e-7e0b-9a53-6d3f1d1c2b7a"] {
        let refusal = refused(look_up(&rig, id).await);
        assert_eq!(
            (refusal.code, refusal.reason.as_str()),
            (Code::NotFound, "NEVER_SENT"),
            "nothing was ever pruned"
        );
        assert_eq!(
            (refusal.meta("fate"), refusal.meta("effect")),
            ("NOT_SENT", "NONE")
        );
    }
    let before = fleetgate_runner::CommandId::mint();
    tap(&rig, "old").await.unwrap();
    // The newest of all always stays.
    tap(&rig, "newest").await.unwrap();
    let mut paused = rig.pause().await;
    paused.config.ledger.retention_max_age = Some(Duration::from_millis(1));
    let rig = paused.resume().await;
    soon("the tap's removal", async {
        while look_up(&rig, "old").await.is_ok() {
            pause().await;
        }
    })
    .await;

    for id in ["old", "order-66", before.as_str()] {
        let refusal = refused(look_up(&rig, id).await);
        assert_eq!(
            (refusal.code, refusal.reason.as_str()),
            (Code::NotFound, "NO_RECORD"),
            "{id} may have been pruned"
        );
        assert_eq!(refusal.meta("fate"), "", "nothing is known");
    }
    let after = fleetgate_runner::CommandId::mint();
    let refusal = refused(look_up(&rig, after.as_str()).await);
    assert_eq!(
        refusal.reason, "NEVER_SENT",
        "it is younger than all that was pruned"
    );
    rig.stop().await;
}
