//! The life of a token beside a gateway that runs: made, good, over.

use std::time::Duration;

use fleetgate_proto::v1 as pb;
use fleetgate_tests::leasing::Caller;
use fleetgate_tests::{pause, refused};
use tokio::time::Instant;
use tonic::Code;

use super::Guarded;

/// How long a gateway may take to notice.
const NOTICE: Duration = Duration::from_secs(2);

/// Asks until the answer is another, and says how long that took.
async fn until_it_is(guarded: &Guarded, who: &Caller, known: bool) -> Duration {
    let begun = Instant::now();
    fleetgate_tests::soon("another answer", async {
        while guarded.ask(who).await.is_ok() != known {
            pause().await;
        }
    })
    .await;
    begun.elapsed()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_is_good_from_when_it_is_made_until_it_is_revoked() {
    let guarded = Guarded::start().await;
    guarded.ask(&guarded.user()).await.unwrap();
    let made = guarded.token(&["create", "--name", "ci", "--role", "viewer"]);
    let made = made.await;
    assert_eq!(made.code, 0, "{}", made.stderr);
    let token = made.text().trim().to_owned();
    let ci = guarded.holder(&token);
    assert!(until_it_is(&guarded, &ci, true).await < NOTICE);
    // It is what it was made for.
    let wish = fleetgate_tests::leasing::any(1);
    let refusal = refused(ci.ask(wish).await);
    let words = (refusal.code, refusal.reason.as_str());
    assert_eq!(words, (Code::PermissionDenied, "ROLE_TOO_LOW"));
    let denied = guarded.user().records().denials("ROLE_TOO_LOW", 1).await;
    assert_eq!(denied[0].who, "token:ci");

    let revoked = guarded.token(&["revoke", "ci"]).await;
    assert_eq!(revoked.code, 0, "{}", revoked.stderr);
    assert!(until_it_is(&guarded, &ci, false).await < NOTICE);
    let refusal = refused(guarded.ask(&ci).await);
    assert_eq!(refusal.code, Code::Unauthenticated, "{refusal:?}");
    assert_eq!(refusal.reason, "CREDENTIALS_INVALID");
    assert!(!refusal.message.contains(&token), "{refusal:?}");
    // Whoever is known by another way still is.
    guarded.ask(&guarded.user()).await.unwrap();
    guarded.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_expires_is_refused_from_then_on_and_said_to_have() {
    let guarded = Guarded::start().await;
    let args = [
        "create",
        "--name",
        "ci",
        "--role",
        "admin",
        "--expires",
        "4s",
    ];
    let made = guarded.token(&args).await;
    assert_eq!(made.code, 0, "{}", made.stderr);
    let begun = Instant::now();
    let ci = guarded.holder(made.text().trim());
    until_it_is(&guarded, &ci, true).await;
    until_it_is(&guarded, &ci, false).await;
    // Whole seconds are kept.
    let lasted = begun.elapsed();
    assert!(lasted < Duration::from_secs(4) + NOTICE, "{lasted:?}");
    let refusal = refused(guarded.ask(&ci).await);
    let words = (refusal.code, refusal.reason.as_str());
    assert_eq!(words, (Code::Unauthenticated, "CREDENTIALS_EXPIRED"));
    let request = pb::DrainGatewayRequest::default();
    let refusal = refused(ci.fleet().drain_gateway(request).await);
    assert_eq!(refusal.reason, "CREDENTIALS_EXPIRED");
    guarded
        .user()
        .records()
        .denials("CREDENTIALS_EXPIRED", 2)
        .await;
    guarded.end().await;
}
