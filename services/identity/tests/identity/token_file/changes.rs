//! The token file while a gateway reads it: what is made, taken back, broken and
//! mended.

use std::fs;
use std::time::Duration;

use fleetgate_identity::{Invalid, Role, TokenFile};

use super::{SECOND, invalid, reading, revoked, set_mode, whose};
use crate::support::{directory, pass, token};

#[tokio::test]
async fn tokens_come_and_go_while_the_gateway_runs() {
    let directory = directory();
    let file = TokenFile::at(directory.path().join("tokens.toml"));
    let by = reading(file.path()).unwrap();
    let one = token(&file, "one", Role::Viewer);
    // The file was absent less than a second ago.
    assert_eq!(whose(&by, &one).await.as_deref(), Ok("token:one"));
    let two = token(&file, "two", Role::Viewer);
    file.revoke("one").unwrap();
    pass(SECOND).await;
    assert_eq!(whose(&by, &one).await, revoked("one"));
    assert_eq!(whose(&by, &two).await.as_deref(), Ok("token:two"));
    fs::remove_file(file.path()).unwrap();
    pass(SECOND).await;
    assert_eq!(whose(&by, &two).await, invalid(Invalid::Token));
}

#[tokio::test]
async fn a_token_is_taken_as_soon_as_it_is_made_however_many_are_not() {
    let directory = directory();
    let file = TokenFile::at(directory.path().join("tokens.toml"));
    let by = reading(file.path()).unwrap();
    let others = TokenFile::at(directory.path().join("others.toml"));
    let guess = token(&others, "guess", Role::Admin);
    for n in 0..5 {
        let guesses = (0..50).map(|_| whose(&by, &guess));
        for guessed in futures_util::future::join_all(guesses).await {
            assert_eq!(guessed, invalid(Invalid::Token));
        }
        let name = format!("new-{n}");
        let new = token(&file, &name, Role::Viewer);
        assert_eq!(whose(&by, &new).await.unwrap(), format!("token:{name}"));
    }
}

#[tokio::test]
async fn after_a_long_pause_no_call_is_judged_by_the_old_file() {
    let directory = directory();
    let file = TokenFile::at(directory.path().join("tokens.toml"));
    let text = token(&file, "ci", Role::Viewer);
    let by = reading(file.path()).unwrap();
    assert!(whose(&by, &text).await.is_ok());
    file.revoke("ci").unwrap();
    pass(Duration::from_secs(86_400)).await;
    let calls = (0..20).map(|_| whose(&by, &text));
    for whose in futures_util::future::join_all(calls).await {
        assert_eq!(whose, revoked("ci"));
    }
}

#[tokio::test]
async fn a_file_that_broke_changes_nothing_until_it_is_mended() {
    let directory = directory();
    let file = TokenFile::at(directory.path().join("tokens.toml"));
    let one = token(&file, "one", Role::Viewer);
    let good = fs::read_to_string(file.path()).unwrap();
    let by = reading(file.path()).unwrap();
    for bad in [
        "",
        "version = 2",
        &good.replace("name", "nom"),
        &format!("{good}[[token"),
        &"#".repeat(5 << 20),
    ] {
        fs::write(file.path(), bad).unwrap();
        pass(SECOND).await;
        assert_eq!(whose(&by, &one).await.as_deref(), Ok("token:one"));
    }
    assert!(file.list().is_err());
    assert!(file.revoke("one").is_err());
    fs::write(file.path(), &good).unwrap();
    set_mode(file.path(), 0o644);
    pass(SECOND).await;
    assert_eq!(whose(&by, &one).await.as_deref(), Ok("token:one"));
    set_mode(file.path(), 0o600);
    file.revoke("one").unwrap();
    pass(SECOND).await;
    assert_eq!(whose(&by, &one).await, revoked("one"));
}
