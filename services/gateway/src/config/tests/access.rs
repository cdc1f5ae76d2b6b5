//! `[auth]`, `[tls]`, `[limits]`, and where the server may listen.

use fleetgate_identity::{AuthSettings, CertificateName, CertificateRule, Grant, JwksSource, Role};

use super::*;

fn settings(config: &Config) -> AuthSettings {
    config.auth.settings(None).unwrap()
}

/// A certificate and a key, as far as a configuration looks at them.
const TLS: &str = "[tls]\ncertificate = \"/c.pem\"\nkey = \"/k.pem\"\n";

const OIDC: &str = "[auth.oidc]\nissuer = \"https://id.lab\"\naudience = \"fleetgate\"\n\
                    jwks = \"https://id.lab/keys\"\n";

fn exposed(rest: &str) -> Result<Config, ConfigError> {
    from_file(&format!("[server]\nlisten = \"0.0.0.0:7700\"\n{rest}"))
}

#[test]
fn by_default_nobody_is_let_in_but_by_a_token() {
    let config = from_file("").unwrap();
    assert_eq!(config.auth.anonymous, None);
    assert!(config.auth.discovery);
    assert!(config.auth.tokens_path().ends_with("fleetgate/tokens.toml"));
    assert_eq!(config.auth.binding, []);
    assert_eq!(config.auth.certificate, []);
    assert_eq!(config.auth.oidc, None);
    assert_eq!(config.tls.files(), Ok(None));
    assert_eq!(config.server.hosts, []);
    assert_eq!(config.limits.calls_per_second.get(), 200);
    assert_eq!(config.limits.call_burst.get(), 400);
    assert_eq!(config.limits.max_queued_commands.get(), 256);
    assert_eq!(config.limits.max_open_leases.get(), 64);
}

#[test]
fn every_key_is_taken() {
    let config = from_file(
        r#"
        [server]
        hosts = ["gateway.lab", "192.0.2.1"]
        [tls]
        certificate = "/c.pem"
        key = "/k.pem"
        client_ca = "/ca.pem"
        client_certificate = "required"
        [limits]
        calls_per_second = 1
        call_burst = 2
        max_queued_commands = 3
        max_open_leases = 4
        [auth]
        anonymous = "viewer"
        tokens = "/tokens.toml"
        discovery = false
        [[auth.binding]]
        principal = "oidc:alice"
        role = "operator"
        labels = { rack = "a" }
        [[auth.certificate]]
        subject = "CN=scheduler,O=Lab"
        name = "scheduler"
        role = "admin"
        [[auth.certificate]]
        uri = "spiffe://lab/ci"
        role = "viewer"
        labels = { rack = "b" }
        [auth.oidc]
        issuer = "https://id.lab"
        audience = ["fleetgate", "lab"]
        jwks = "/keys.json"
        leeway = "4s"
        principal_claim = "email"
        roles_claim = "groups"
        "#,
    )
    .unwrap();
    let hosts = &config.server.hosts;
    assert!(hosts[0].is("Gateway.Lab") && hosts[1].is("192.0.2.1"));
    let files = config.tls.files().unwrap().unwrap();
    assert_eq!(files.certificate, PathBuf::from("/c.pem"));
    assert_eq!(files.key, PathBuf::from("/k.pem"));
    let clients = files.clients.unwrap();
    assert_eq!((clients.ca, clients.required), ("/ca.pem".into(), true));
    let limits = &config.limits;
    let counts = (
        limits.max_queued_commands.get(),
        limits.max_open_leases.get(),
    );
    let rates = (limits.calls_per_second.get(), limits.call_burst.get());
    assert_eq!((rates, counts), ((1, 2), (3, 4)));

    assert!(!config.auth.discovery);
    let settings = settings(&config);
    assert_eq!(settings.anonymous, Some(Role::Viewer));
    assert_eq!(settings.tokens, Some("/tokens.toml".into()));
    let in_rack = |role, rack: &str| Grant {
        role,
        labels: [("rack".to_owned(), rack.to_owned())].into(),
    };
    assert_eq!(settings.bindings.len(), 1);
    assert_eq!(settings.bindings[0].principal, "oidc:alice");
    assert_eq!(settings.bindings[0].grant, in_rack(Role::Operator, "a"));
    let scheduler = CertificateRule::new(
        CertificateName::Subject("CN=scheduler,O=Lab".to_owned()),
        Some("scheduler".to_owned()),
        Grant::fleet_wide(Role::Admin),
    );
    let uri = CertificateName::Uri("spiffe://lab/ci".to_owned());
    let ci = CertificateRule::new(uri, None, in_rack(Role::Viewer, "b"));
    assert_eq!(settings.certificates, [scheduler.unwrap(), ci.unwrap()]);
    let oidc = settings.oidc.unwrap();
    assert_eq!(oidc.issuer, "https://id.lab");
    assert_eq!(oidc.audience, ["fleetgate", "lab"]);
    assert_eq!(oidc.jwks, JwksSource::File("/keys.json".into()));
    assert_eq!(oidc.leeway, Duration::from_secs(4));
    assert_eq!(oidc.principal_claim, "email");
    assert_eq!(oidc.roles_claim.as_deref(), Some("groups"));
}

#[test]
fn of_an_issuer_three_things_are_enough() {
    let oidc = settings(&from_file(OIDC).unwrap()).oidc.unwrap();
    assert_eq!(oidc.audience, ["fleetgate"]);
    assert_eq!(oidc.leeway, Duration::from_secs(30));
    assert_eq!(
        (oidc.principal_claim.as_str(), oidc.roles_claim),
        ("sub", None)
    );
}

#[test]
fn a_bad_value_is_named_with_its_line() {
    for (text, line, word) in [
        ("[auth]\nanonymous = \"root\"", 2, "root"),
        (
            "[[auth.binding]]\nprincipal = \"alice\"\nrole = \"viewer\"",
            2,
            "alice",
        ),
        (
            "[[auth.binding]]\nprincipal = \"oidc:\"\nrole = \"viewer\"",
            2,
            "oidc:",
        ),
        (
            "[[auth.binding]]\nprincipal = \"oidc:a\"\nrole = \"owner\"",
            3,
            "owner",
        ),
        ("[[auth.certificate]]\ndns = \"a\"", 1, "role"),
        ("[tls]\nclient_certificate = \"maybe\"", 2, "maybe"),
        ("[limits]\ncalls_per_second = 0", 2, "calls_per_second"),
        (
            "[limits]\nmax_queued_commands = 0",
            2,
            "max_queued_commands",
        ),
        (
            "[server]\nhosts = [\"http://gateway.lab\"]",
            2,
            "http://gateway.lab",
        ),
        (
            "[server]\nhosts = [\"gateway.lab:7700\"]",
            2,
            "gateway.lab:7700",
        ),
        (
            "[auth.oidc]\nissuer = \"a\"\njwks = \"/a\"\naudience = []",
            4,
            "audience",
        ),
        (
            "[auth.oidc]\nissuer = \"a\"\njwks = \"/a\"\naudience = 1",
            4,
            "audience",
        ),
        ("[admin]\nlisten = \"0.0.0.0:9000\"", 2, "loopback"),
    ] {
        let message = refusal(text);
        assert!(message.contains(&format!("line {line}")), "{message}");
        assert!(message.contains(word), "{message}");
    }
}

#[test]
fn parts_that_do_not_go_together_are_refused_with_what_to_do() {
    for (text, words) in [
        (
            "[tls]\ncertificate = \"/c.pem\"",
            ["without key", "private key"],
        ),
        ("[tls]\nkey = \"/k.pem\"", ["without certificate", "PEM"]),
        (
            "[tls]\nclient_ca = \"/ca.pem\"\nclient_certificate = \"optional\"",
            ["certificate and key of [tls]", "set"],
        ),
        (
            &format!("{TLS}client_certificate = \"required\""),
            ["client_ca", "authorities"],
        ),
        (
            &format!("{TLS}client_ca = \"/ca.pem\""),
            ["client_certificate", "optional or"],
        ),
        (
            "[[auth.certificate]]\ndns = \"a\"\nrole = \"viewer\"",
            ["client_ca", "[tls]"],
        ),
        (
            "[[auth.certificate]]\nrole = \"viewer\"",
            ["one of", "subject, dns, uri"],
        ),
        (
            "[[auth.certificate]]\ndns = \"a\"\nuri = \"b\"\nrole = \"viewer\"",
            ["one of", "subject, dns, uri"],
        ),
        (
            "[[auth.certificate]]\nsubject = \"scheduler\"\nrole = \"viewer\"",
            ["`scheduler`", "CN=scheduler"],
        ),
        (
            "[auth.oidc]\nissuer = \"a\"\naudience = \"b\"\njwks = \"http://id.lab/keys\"",
            ["http://id.lab/keys", "https"],
        ),
    ] {
        let message = refusal(text);
        for word in words {
            assert!(message.contains(word), "{word} in {message}");
        }
        assert!(message.contains("fleetgate.toml"), "{message}");
    }
}

#[test]
fn an_address_that_others_can_reach_takes_tls_and_a_way_to_know_callers_by() {
    let directory = tempfile::tempdir().unwrap();
    let tokens = directory.path().join("tokens.toml");
    let at = format!("[auth]\ntokens = \"{}\"\n", tokens.display());
    for address in [
        "0.0.0.0:7700",
        "192.168.1.2:7700",
        "[::]:7700",
        "[::ffff:10.0.0.1]:1",
    ] {
        let message = refusal(&format!("[server]\nlisten = \"{address}\"\n{at}"));
        for word in [
            address,
            "certificate and key of [tls]",
            "fleetgate token create",
            "[auth.oidc]",
            "[[auth.certificate]]",
            "127.0.0.1",
        ] {
            assert!(message.contains(word), "{word} in {message}");
        }
    }
    let refused = |rest: &str| exposed(rest).unwrap_err().to_string();
    let message = refused(&format!("{TLS}{at}"));
    assert!(message.contains("token create"), "{message}");
    assert!(!message.contains("certificate and key"), "{message}");
    let message = refused(OIDC);
    assert!(message.contains("certificate and key"), "{message}");
    assert!(!message.contains("token create"), "{message}");
    let message = refused(&format!("{TLS}{OIDC}[auth]\nanonymous = \"viewer\""));
    assert!(
        message.contains("take anonymous out of [auth]"),
        "{message}"
    );

    exposed(&format!("{TLS}{OIDC}")).unwrap();
    exposed(&format!(
        "{TLS}client_ca = \"/ca.pem\"\nclient_certificate = \"optional\"\n\
         [[auth.certificate]]\ndns = \"ci.lab\"\nrole = \"operator\""
    ))
    .unwrap();
    fs::write(&tokens, "").unwrap();
    exposed(&format!("{TLS}{at}")).unwrap();
}

#[test]
fn a_variable_cannot_open_what_the_file_closes() {
    let error = from_env("FLEETGATE_SERVER__LISTEN", "0.0.0.0:7700").unwrap_err();
    assert!(error.to_string().contains("[tls]"), "{error}");
}

#[test]
fn loopback_needs_nothing_and_anonymous_callers_may_be_let_in_there() {
    for address in [
        "127.0.0.1:0",
        "[::1]:0",
        "127.8.8.8:1",
        "[::ffff:127.0.0.1]:1",
    ] {
        let text = format!("server.listen = \"{address}\"\nauth.anonymous = \"admin\"");
        from_file(&text).unwrap();
    }
}
