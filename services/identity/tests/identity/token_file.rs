//! The token file: made, changed, read again, refused.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::Path;
use std::sync::Barrier;
use std::time::{Duration, SystemTime};

use fleetgate_identity::{
    AuthError, AuthSettings, Authenticator, Grant, IdentityError, Invalid, Kind, NewToken, Role,
    Secret, TokenFile,
};

use crate::support::{authenticator, bearer, directory, name, on_rack, pass, secret_of, token};

mod changes;

/// As long as a file's content may be out of date.
const SECOND: Duration = Duration::from_secs(1);

fn reading(path: &Path) -> Result<Authenticator, IdentityError> {
    Authenticator::new(AuthSettings {
        tokens: Some(path.to_owned()),
        ..AuthSettings::default()
    })
}

async fn whose(by: &Authenticator, token: &Secret) -> Result<String, AuthError> {
    name(bearer(by, token.expose()).await)
}

fn invalid<T>(why: Invalid) -> Result<T, AuthError> {
    Err(AuthError::Invalid { why })
}

/// Refused as the token of this name, which was taken back.
fn revoked<T>(name: &str) -> Result<T, AuthError> {
    let who = format!("token:{name}").into();
    Err(AuthError::Revoked { who })
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

#[tokio::test]
async fn a_token_makes_its_holder_known() {
    let directory = directory();
    let file = TokenFile::at(directory.path().join("state/fleetgate/tokens.toml"));
    let new = NewToken {
        name: "ci".to_owned(),
        grants: vec![
            on_rack(Role::Operator, "a"),
            Grant::fleet_wide(Role::Viewer),
        ],
        expires: Some(SystemTime::now() + Duration::from_secs(3600)),
    };
    let (info, text) = file.create(new.clone()).unwrap();
    assert!(text.expose().starts_with(&format!("fgt_{}_", info.id)));
    assert_eq!((&info.name, &info.grants), (&new.name, &new.grants));
    assert!(info.is_in_force(SystemTime::now()));
    assert_eq!(file.list().unwrap(), [info]);
    let ci = bearer(&reading(file.path()).unwrap(), text.expose())
        .await
        .unwrap();
    assert_eq!((ci.name(), ci.kind()), ("token:ci", Kind::Token));
    assert_eq!(ci.grants(), new.grants);
}

#[test]
fn the_file_is_its_owners_alone_and_holds_no_secret() {
    let directory = directory();
    let path = directory.path().join("new/tokens.toml");
    let text = token(&TokenFile::at(&path), "ci", Role::Admin);
    let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
    assert_eq!(mode(&path), 0o600);
    assert_eq!(mode(path.parent().unwrap()), 0o700);
    let secret = secret_of(&text);
    assert!(!fs::read_to_string(&path).unwrap().contains(secret));
}

#[tokio::test]
async fn a_wrong_secret_and_an_unknown_id_are_told_the_same() {
    let directory = directory();
    let file = TokenFile::at(directory.path().join("tokens.toml"));
    let right = token(&file, "ci", Role::Admin);
    let by = reading(file.path()).unwrap();
    let other = token(
        &TokenFile::at(directory.path().join("others.toml")),
        "ci",
        Role::Admin,
    );
    let secret = secret_of(&other);
    let wrong = right.expose().replace(secret_of(&right), secret);
    let wrong = name(bearer(&by, &wrong).await).unwrap_err();
    let unknown = whose(&by, &other).await.unwrap_err();
    assert_eq!(wrong, unknown);
    assert_eq!(wrong.to_string(), unknown.to_string());
    assert_eq!(wrong, Invalid::Token.into());
    assert_eq!(whose(&by, &right).await.as_deref(), Ok("token:ci"));
}

#[tokio::test]
async fn only_who_knows_the_secret_is_told_that_a_token_has_expired() {
    let directory = directory();
    let file = TokenFile::at(directory.path().join("tokens.toml"));
    let new = NewToken {
        name: "ci".to_owned(),
        grants: Vec::new(),
        expires: Some(SystemTime::now() - Duration::from_secs(1)),
    };
    let (info, text) = file.create(new).unwrap();
    assert!(!info.is_in_force(SystemTime::now()));
    let by = reading(file.path()).unwrap();
    assert_eq!(
        whose(&by, &text).await,
        Err(AuthError::Expired {
            what: "token",
            who: Some("token:ci".into()),
        })
    );
    let guess = format!("fgt_{}_{}", info.id, "A".repeat(43));
    assert_eq!(name(bearer(&by, &guess).await), invalid(Invalid::Token));
    file.revoke(info.id.as_str()).unwrap();
    pass(SECOND).await;
    assert_eq!(whose(&by, &text).await, revoked("ci"));
}

#[test]
fn a_time_that_cannot_be_written_down_is_refused_and_nothing_is_made() {
    let directory = directory();
    let file = TokenFile::at(directory.path().join("tokens.toml"));
    let until = |seconds| NewToken {
        name: "ci".to_owned(),
        grants: Vec::new(),
        expires: Some(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)),
    };
    let year_10000 = 253_402_300_800;
    for seconds in [year_10000, 1 << 40] {
        let error = file.create(until(seconds)).unwrap_err();
        assert!(error.to_string().contains("year 10000"), "{error}");
    }
    assert_eq!(file.list().unwrap(), []);
    file.create(until(year_10000 - 1)).unwrap();
    assert_eq!(file.list().unwrap().len(), 1);
}

#[test]
fn a_file_that_others_can_use_is_refused_with_what_to_do() {
    let directory = directory();
    let file = TokenFile::at(directory.path().join("tokens.toml"));
    token(&file, "ci", Role::Viewer);
    for mode in [0o640, 0o604, 0o620, 0o602, 0o644] {
        set_mode(file.path(), mode);
        let refusal = reading(file.path()).unwrap_err().to_string();
        let wanted = format!("run `chmod 600 {}`", file.path().display());
        assert!(refusal.contains(&wanted), "{refusal}");
        assert!(matches!(file.list(), Err(IdentityError::Exposed { .. })));
        assert!(matches!(
            file.revoke("ci"),
            Err(IdentityError::Exposed { .. })
        ));
    }
}

#[test]
fn a_directory_that_others_can_write_to_gets_no_tokens() {
    let directory = directory();
    set_mode(directory.path(), 0o777);
    let file = TokenFile::at(directory.path().join("tokens.toml"));
    let new = NewToken {
        name: "ci".to_owned(),
        grants: Vec::new(),
        expires: None,
    };
    let refusal = file.create(new).unwrap_err();
    assert!(
        matches!(refusal, IdentityError::Exposed { wanted: 0o700, .. }),
        "{refusal}"
    );
    assert!(!file.path().exists());
}

#[test]
fn a_file_that_others_could_replace_is_refused() {
    let directory = directory();
    let file = TokenFile::at(directory.path().join("tokens.toml"));
    token(&file, "ci", Role::Viewer);
    set_mode(directory.path(), 0o775);
    let refusal = reading(file.path()).unwrap_err().to_string();
    let wanted = format!("run `chmod 700 {}`", directory.path().display());
    assert!(refusal.contains(&wanted), "{refusal}");
    for mode in [0o1777, 0o755, 0o700] {
        set_mode(directory.path(), mode);
        assert!(reading(file.path()).is_ok(), "{mode:o}");
    }
}

#[test]
fn a_file_of_somebody_else_is_refused() {
    let directory = directory();
    let file = TokenFile::at(directory.path().join("tokens.toml"));
    token(&file, "ci", Role::Viewer);
    // Only root can give a file away.
    if chown(file.path(), Some(12_345), None).is_err() {
        return;
    }
    let refusal = reading(file.path()).unwrap_err();
    assert!(
        matches!(refusal, IdentityError::NotOurs { owner: 12_345, .. }),
        "{refusal}"
    );
}

#[test]
fn what_is_no_file_is_refused() {
    let directory = directory();
    let refusal = reading(directory.path()).unwrap_err();
    assert!(
        matches!(refusal, IdentityError::WrongKind { .. }),
        "{refusal}"
    );
}

#[test]
fn a_link_to_the_file_stays_one() {
    let directory = directory();
    let (real, link) = (
        directory.path().join("real/t.toml"),
        directory.path().join("link.toml"),
    );
    let file = TokenFile::at(&real);
    token(&file, "one", Role::Viewer);
    symlink(&real, &link).unwrap();
    token(&TokenFile::at(&link), "two", Role::Viewer);
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(file.list().unwrap().len(), 2);
}

#[test]
fn a_token_is_revoked_by_its_id_or_by_a_name_that_is_its_own() {
    let directory = directory();
    let file = TokenFile::at(directory.path().join("tokens.toml"));
    let is_unknown = |which: &str| matches!(file.revoke(which), Err(IdentityError::NoToken { .. }));
    assert!(is_unknown("ci"));
    assert!(!file.path().exists());
    token(&file, "ci", Role::Viewer);
    token(&file, "ci", Role::Viewer);
    let ids: Vec<_> = file
        .list()
        .unwrap()
        .into_iter()
        .map(|token| token.id)
        .collect();
    let refusal = file.revoke("ci").unwrap_err().to_string();
    assert!(
        ids.iter().all(|id| refusal.contains(id.as_str())),
        "{refusal}"
    );
    let first = file.revoke(ids[0].as_str()).unwrap();
    assert_eq!(first.id, ids[0]);
    // Again, and when it was stays.
    assert_eq!(file.revoke(ids[0].as_str()).unwrap(), first);
    assert_eq!(file.revoke("ci").unwrap().id, ids[1]);
    assert!(is_unknown("ci"));
    assert!(is_unknown(""));
}

#[test]
fn names_that_would_be_mistaken_are_refused() {
    let directory = directory();
    let file = TokenFile::at(directory.path().join("tokens.toml"));
    let create = |name: &str| {
        file.create(NewToken {
            name: name.to_owned(),
            grants: Vec::new(),
            expires: None,
        })
    };
    for name in ["", "a b", "a:b", "a\n", "ü", &"a".repeat(65)] {
        assert!(
            matches!(create(name), Err(IdentityError::Name { .. })),
            "{name}"
        );
    }
    assert!(create("build.7_x-y@lab").is_ok());
}

#[test]
fn nothing_is_lost_when_many_change_the_file_at_once() {
    const EACH: usize = 8;
    let directory = directory();
    let path = directory.path().join("tokens.toml");
    let together = Barrier::new(4);
    std::thread::scope(|scope| {
        for worker in 0..4 {
            let (path, together) = (&path, &together);
            scope.spawn(move || {
                let file = TokenFile::at(path);
                together.wait();
                for number in 0..EACH {
                    token(&file, &format!("{worker}.{number}"), Role::Viewer);
                    // Readers need no lock: they never see half a file.
                    file.list().unwrap();
                }
            });
        }
    });
    assert_eq!(TokenFile::at(&path).list().unwrap().len(), 4 * EACH);
    let left: Vec<_> = fs::read_dir(directory.path()).unwrap().collect();
    assert_eq!(left.len(), 2, "{left:?}");
}

#[tokio::test]
async fn without_a_token_file_no_token_is_taken() {
    let directory = directory();
    let text = token(
        &TokenFile::at(directory.path().join("tokens.toml")),
        "ci",
        Role::Viewer,
    );
    let by = authenticator(AuthSettings::default());
    assert_eq!(whose(&by, &text).await, invalid(Invalid::Unsupported));
}
