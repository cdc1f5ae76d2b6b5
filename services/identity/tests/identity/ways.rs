//! Which credential counts, and what counts as one.

use fleetgate_identity::{
    AuthError, AuthSettings, Authenticator, Binding, CertificateName, CertificateRule, Credentials,
    Grant, Invalid, Kind, LocalToken, Role, TokenFile,
};
use proptest::prelude::*;

use crate::certificates::certificate;
use crate::support::{authenticator, bearer, directory, name, on_rack, token};

async fn whose(
    by: &Authenticator,
    authorization: Option<&str>,
    certificate: Option<&[u8]>,
) -> Result<String, AuthError> {
    let credentials = Credentials {
        authorization: authorization.map(str::as_bytes),
        certificate,
    };
    name(by.authenticate(credentials).await)
}

fn rule() -> CertificateRule {
    let subject = CertificateName::Subject("CN=scheduler".to_owned());
    CertificateRule::new(subject, None, Grant::fleet_wide(Role::Operator)).unwrap()
}

#[tokio::test]
async fn who_shows_nothing_is_anonymous_if_that_is_allowed() {
    let by = authenticator(AuthSettings::default());
    assert_eq!(whose(&by, None, None).await, Err(AuthError::Missing));
    let by = authenticator(AuthSettings {
        anonymous: Some(Role::Viewer),
        ..AuthSettings::default()
    });
    let anonymous = by.authenticate(Credentials::default()).await.unwrap();
    assert_eq!(
        (anonymous.name(), anonymous.kind()),
        ("anonymous", Kind::Anonymous)
    );
    assert_eq!(anonymous.fleet_wide(), Some(Role::Viewer));
}

#[tokio::test]
async fn what_is_wrong_is_not_passed_over() {
    let by = authenticator(AuthSettings {
        anonymous: Some(Role::Admin),
        certificates: vec![rule()],
        ..AuthSettings::default()
    });
    let scheduler = certificate(&[("CN", "scheduler")], &[]);
    let stranger = certificate(&[("CN", "stranger")], &[]);
    let token = Some("Bearer fgt_abc_def");
    let refused = |why: Invalid| Err(AuthError::from(why));
    assert_eq!(whose(&by, token, None).await, refused(Invalid::Token));
    assert_eq!(
        whose(&by, token, Some(&scheduler)).await,
        refused(Invalid::Token)
    );
    assert_eq!(
        whose(&by, Some("Bearer a.b.c"), None).await,
        refused(Invalid::Unsupported)
    );
    assert_eq!(
        whose(&by, None, Some(&stranger)).await,
        refused(Invalid::Certificate)
    );
    assert_eq!(
        whose(&by, None, Some(&scheduler)).await.as_deref(),
        Ok("cert:CN=scheduler")
    );
}

#[tokio::test]
async fn where_no_certificate_is_known_none_says_who_calls() {
    let by = authenticator(AuthSettings {
        anonymous: Some(Role::Viewer),
        ..AuthSettings::default()
    });
    let scheduler = certificate(&[("CN", "scheduler")], &[]);
    assert_eq!(
        whose(&by, None, Some(&scheduler)).await.as_deref(),
        Ok("anonymous")
    );
}

#[tokio::test]
async fn a_token_counts_before_a_certificate() {
    let directory = directory();
    let file = TokenFile::at(directory.path().join("tokens.toml"));
    let token = token(&file, "ci", Role::Viewer);
    let by = authenticator(AuthSettings {
        tokens: Some(file.path().to_owned()),
        certificates: vec![rule()],
        ..AuthSettings::default()
    });
    let scheduler = certificate(&[("CN", "scheduler")], &[]);
    let header = format!("Bearer {}", token.expose());
    assert_eq!(
        whose(&by, Some(&header), Some(&scheduler)).await.as_deref(),
        Ok("token:ci")
    );
}

#[tokio::test]
async fn the_local_token_makes_an_admin_of_this_gateway_only() {
    let (mine, other) = (LocalToken::mint(), LocalToken::mint());
    let text = mine.text().clone();
    let by = authenticator(AuthSettings {
        local: Some(mine),
        ..AuthSettings::default()
    });
    let local = bearer(&by, text.expose()).await.unwrap();
    assert_eq!((local.name(), local.kind()), ("local", Kind::Local));
    assert_eq!(local.fleet_wide(), Some(Role::Admin));
    let refused = name(bearer(&by, other.text().expose()).await);
    assert_eq!(refused, Err(Invalid::Token.into()));
    let without = authenticator(AuthSettings::default());
    assert_eq!(
        name(bearer(&without, text.expose()).await),
        Err(Invalid::Token.into())
    );
    // What stands for no token is not the hash of any.
    let nothing = format!("fgt_local_{}", "A".repeat(43));
    assert_eq!(
        name(bearer(&without, &nothing).await),
        Err(Invalid::Token.into())
    );
}

#[tokio::test]
async fn bindings_give_more_to_whoever_has_the_name() {
    let directory = directory();
    let file = TokenFile::at(directory.path().join("tokens.toml"));
    let token = token(&file, "ci", Role::Viewer);
    let binding = |principal: &str, grant: Grant| Binding {
        principal: principal.to_owned(),
        grant,
    };
    let by = authenticator(AuthSettings {
        tokens: Some(file.path().to_owned()),
        bindings: vec![
            binding("token:ci", on_rack(Role::Operator, "a")),
            binding("token:ci", on_rack(Role::Admin, "b")),
            binding("token:other", Grant::fleet_wide(Role::Admin)),
        ],
        ..AuthSettings::default()
    });
    let ci = bearer(&by, token.expose()).await.unwrap();
    let on = |rack: &str| ci.on(&on_rack(Role::Viewer, rack).labels);
    assert_eq!(ci.fleet_wide(), Some(Role::Viewer));
    assert_eq!(on("a"), Some(Role::Operator));
    assert_eq!(on("b"), Some(Role::Admin));
    assert_eq!(on("c"), Some(Role::Viewer));
}

#[tokio::test]
async fn the_scheme_is_bearer_in_any_letters() {
    let local = LocalToken::mint();
    let text = local.text().clone();
    let text = text.expose();
    let by = authenticator(AuthSettings {
        local: Some(local),
        ..AuthSettings::default()
    });
    for header in [
        format!("bearer {text}"),
        format!("BEARER {text}"),
        format!("Bearer  {text} "),
    ] {
        assert_eq!(
            whose(&by, Some(&header), None).await.as_deref(),
            Ok("local")
        );
    }
    for header in [
        text.to_owned(),
        format!("Basic {text}"),
        format!("Bearer{text}"),
        format!("Bearer\t{text}"),
        format!("Bearer {text} {text}"),
        format!("Bearer {text},"),
        "Bearer ".to_owned(),
        "Bearer".to_owned(),
        String::new(),
    ] {
        let refused = whose(&by, Some(&header), None).await.unwrap_err();
        assert!(matches!(refused, AuthError::Invalid { .. }));
    }
}

proptest! {
    #[test]
    fn no_header_and_no_certificate_opens_the_door_by_chance(
        header in prop::collection::vec(any::<u8>(), 0..200),
        credential in "(Bearer |bearer )?(fgt_)?[a-z0-9._-]{0,80}",
        certificate in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        let by = authenticator(AuthSettings {
            local: Some(LocalToken::mint()),
            certificates: vec![rule()],
            ..AuthSettings::default()
        });
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        for authorization in [Some(header.as_slice()), Some(credential.as_bytes()), None] {
            let credentials = Credentials { authorization, certificate: Some(&certificate) };
            prop_assert!(runtime.block_on(by.authenticate(credentials)).is_err());
        }
    }
}
