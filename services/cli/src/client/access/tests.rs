//! Whose secrets are used, and where they are not sent.

use std::fs;
use std::path::PathBuf;

use tempfile::TempDir;

use super::*;

const TEXT: &str = "fgt_0123456789_canary-secret";

fn server(text: &str) -> Server {
    text.parse().unwrap()
}

/// A file with this in it, for these to use.
fn file(dir: &TempDir, text: &str, mode: u32) -> PathBuf {
    let path = dir.path().join(format!("token-{mode:o}-{}", text.len()));
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    path
}

fn with_token() -> Access {
    Access {
        token: Some(Secret::from(TEXT.to_owned())),
        ..Access::default()
    }
}

#[test]
fn a_token_file_holds_one_token_and_is_its_owners_alone() {
    let dir = tempfile::tempdir().unwrap();
    let good = file(&dir, &format!("{TEXT}\n"), 0o600);
    assert_eq!(read(&good).unwrap().expose(), TEXT);
    for (text, mode, word) in [
        (TEXT, 0o640, "chmod 600"),
        (TEXT, 0o604, "chmod 600"),
        (" \n", 0o600, "empty"),
        ("one two", 0o600, "more than one"),
    ] {
        let error = read(&file(&dir, text, mode)).unwrap_err().to_string();
        assert!(error.contains(word), "{text:?} {mode:o}: {error}");
    }
    assert!(read(&dir.path().join("none")).is_err());
    let long = "a".repeat(70 * 1024);
    assert!(
        read(&file(&dir, &long, 0o600))
            .unwrap_err()
            .to_string()
            .contains("long")
    );
}

#[test]
fn a_token_is_not_sent_where_it_could_be_read_on_the_way() {
    let access = with_token();
    for near in ["http://127.0.0.1:1", "http://[::1]:1", "http://localhost:1"] {
        let settled = access.settle(&server(near)).unwrap();
        let header = settled.authorization.unwrap();
        assert_eq!(header, format!("Bearer {TEXT}"));
        assert!(settled.tls.is_none());
    }
    let error = access.settle(&server("http://10.0.0.2:1")).unwrap_err();
    assert!(error.to_string().contains("https://"), "{error}");
}

#[test]
fn nothing_that_is_formatted_shows_a_token() {
    let access = with_token();
    let settled = access.settle(&server("http://127.0.0.1:1")).unwrap();
    for shown in [format!("{access:?}"), format!("{settled:?}")] {
        assert!(!shown.contains("canary"), "{shown}");
    }
}

#[test]
fn a_file_goes_before_the_environment() {
    let dir = tempfile::tempdir().unwrap();
    let access = Access {
        token_file: Some(file(&dir, "other", 0o600)),
        ..with_token()
    };
    let settled = access.settle(&server("http://127.0.0.1:1")).unwrap();
    assert_eq!(settled.authorization.unwrap(), "Bearer other");
    let unreadable = Access {
        token_file: Some(dir.path().join("none")),
        ..with_token()
    };
    assert!(unreadable.settle(&server("http://127.0.0.1:1")).is_err());
}

#[test]
fn a_certificate_goes_with_its_key_and_over_tls_alone() {
    let half = Access {
        cert: Some("cert.pem".into()),
        ..Access::default()
    };
    let error = half.settle(&server("https://10.0.0.2:1")).unwrap_err();
    assert!(error.to_string().contains("--key"), "{error}");
    let whole = Access {
        key: Some("key.pem".into()),
        ..half
    };
    let error = whole.settle(&server("http://127.0.0.1:1")).unwrap_err();
    assert!(error.to_string().contains("https://"), "{error}");
}

#[test]
fn another_process_is_told_the_same_by_absolute_paths() {
    let access = Access {
        ca: Some("ca.pem".into()),
        server_name: Some("lab".to_owned()),
        ..with_token()
    };
    let variables = access.variables();
    assert_eq!(variables[1], ("FLEETGATE_SERVER_NAME", "lab".to_owned()));
    let (name, path) = &variables[0];
    assert!(*name == "FLEETGATE_CA" && path.ends_with("/ca.pem") && path.starts_with('/'));
    assert_eq!(
        variables.len(),
        2,
        "the token is in the environment already"
    );
}
