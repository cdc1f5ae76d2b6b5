//! Whose certificates are.

use std::net::Ipv4Addr;

use fleetgate_identity::{
    AuthError, AuthSettings, Authenticator, CertificateName, CertificateRule, Credentials, Grant,
    Invalid, Kind, Role,
};
use rcgen::string::{Ia5String, PrintableString};
use rcgen::{CertificateParams, DistinguishedName, DnType, DnValue, KeyPair, SanType};

use crate::support::{authenticator, name, on_rack};

fn kind(part: &str) -> DnType {
    match part {
        "CN" => DnType::CommonName,
        "O" => DnType::OrganizationName,
        "OU" => DnType::OrganizationalUnitName,
        "C" => DnType::CountryName,
        other => panic!("{other} is not known"),
    }
}

/// A certificate whose subject has these parts, the most general one first.
pub(crate) fn certificate(subject: &[(&str, &str)], alternatives: &[SanType]) -> Vec<u8> {
    let subject: Vec<_> = subject
        .iter()
        .map(|(part, value)| (*part, DnValue::Utf8String((*value).to_owned())))
        .collect();
    with(&subject, alternatives)
}

fn with(subject: &[(&str, DnValue)], alternatives: &[SanType]) -> Vec<u8> {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    for (part, value) in subject {
        params.distinguished_name.push(kind(part), value.clone());
    }
    params.subject_alt_names = alternatives.to_vec();
    let key = KeyPair::generate().unwrap();
    params.self_signed(&key).unwrap().der().to_vec()
}

fn ia5(text: &str) -> Ia5String {
    text.try_into().unwrap()
}

fn dns(name: &str) -> SanType {
    SanType::DnsName(ia5(name))
}

fn uri(name: &str) -> SanType {
    SanType::URI(ia5(name))
}

fn email(name: &str) -> SanType {
    SanType::Rfc822Name(ia5(name))
}

fn rule(matches: CertificateName) -> CertificateRule {
    CertificateRule::new(matches, None, Grant::fleet_wide(Role::Operator)).unwrap()
}

fn subject(text: &str) -> CertificateName {
    CertificateName::Subject(text.to_owned())
}

fn by(rules: Vec<CertificateRule>) -> Authenticator {
    authenticator(AuthSettings {
        certificates: rules,
        ..AuthSettings::default()
    })
}

async fn whose(by: &Authenticator, der: &[u8]) -> Result<String, AuthError> {
    let credentials = Credentials {
        authorization: None,
        certificate: Some(der),
    };
    name(by.authenticate(credentials).await)
}

const UNKNOWN: Result<&str, &AuthError> = Err(&AuthError::Invalid {
    why: Invalid::Certificate,
});

async fn is(by: &Authenticator, der: &[u8], expected: Result<&str, &AuthError>) {
    let whose = whose(by, der).await;
    assert_eq!(whose.as_ref().map(String::as_str), expected);
}

#[tokio::test]
async fn a_subject_is_compared_whole() {
    let by = by(vec![rule(subject("CN=scheduler,O=Lab"))]);
    let lab = ("O", "Lab");
    is(
        &by,
        &certificate(&[lab, ("CN", "scheduler")], &[]),
        Ok("cert:CN=scheduler,O=Lab"),
    )
    .await;
    for other in [
        certificate(&[("CN", "scheduler")], &[]),
        certificate(&[("CN", "scheduler"), lab], &[]),
        certificate(&[lab, ("OU", "x"), ("CN", "scheduler")], &[]),
        certificate(&[lab, ("CN", "Scheduler")], &[]),
        certificate(&[lab, ("CN", "scheduler ")], &[]),
        certificate(&[lab, ("CN", "scheduler\0")], &[]),
        // Prints like it, without escapes.
        certificate(&[("CN", "scheduler,O=Lab")], &[]),
        certificate(&[], &[dns("CN=scheduler,O=Lab")]),
        certificate(&[], &[]),
    ] {
        is(&by, &other, UNKNOWN).await;
    }
}

#[tokio::test]
async fn what_kind_of_string_a_name_is_kept_in_does_not_count() {
    let by = by(vec![rule(subject("CN=scheduler,C=DE"))]);
    let printable = |text: &str| DnValue::PrintableString(PrintableString::try_from(text).unwrap());
    let utf8 = |text: &str| DnValue::Utf8String(text.to_owned());
    for (country, name) in [
        (utf8("DE"), utf8("scheduler")),
        (printable("DE"), printable("scheduler")),
        (printable("DE"), DnValue::Ia5String(ia5("scheduler"))),
    ] {
        let certificate = with(&[("C", country), ("CN", name)], &[]);
        is(&by, &certificate, Ok("cert:CN=scheduler,C=DE")).await;
    }
}

#[tokio::test]
async fn letters_that_mean_something_are_escaped() {
    let by = by(vec![rule(subject(r"CN=a\, b\+c,O=Ü"))]);
    is(
        &by,
        &certificate(&[("O", "Ü"), ("CN", "a, b+c")], &[]),
        Ok(r"cert:CN=a\, b\+c,O=Ü"),
    )
    .await;
}

#[tokio::test]
async fn alternative_names_are_compared_by_their_kind() {
    let spiffe = "spiffe://lab.example/scheduler";
    let by = by(vec![
        rule(CertificateName::Dns("Scheduler.lab.example".to_owned())),
        rule(CertificateName::Uri(spiffe.to_owned())),
        rule(CertificateName::Email("ci@lab.example".to_owned())),
    ]);
    let of = |names: &[SanType]| certificate(&[("CN", "any")], names);
    is(
        &by,
        &of(&[dns("x.example"), dns("scheduler.LAB.example")]),
        Ok("cert:Scheduler.lab.example"),
    )
    .await;
    is(
        &by,
        &of(&[uri(spiffe)]),
        Ok("cert:spiffe://lab.example/scheduler"),
    )
    .await;
    is(
        &by,
        &of(&[email("ci@lab.example")]),
        Ok("cert:ci@lab.example"),
    )
    .await;
    for other in [
        of(&[dns("*.lab.example")]),
        of(&[dns("a.scheduler.lab.example")]),
        of(&[uri("spiffe://lab.example/scheduler/x")]),
        of(&[uri("spiffe://lab.example/Scheduler")]),
        of(&[uri("scheduler.lab.example")]),
        of(&[dns("ci@lab.example")]),
        of(&[SanType::IpAddress(Ipv4Addr::LOCALHOST.into())]),
        of(&[]),
        certificate(&[("CN", "scheduler.lab.example")], &[]),
    ] {
        is(&by, &other, UNKNOWN).await;
    }
}

#[tokio::test]
async fn the_first_rule_names_and_all_rules_of_the_name_give() {
    let named = |matches: CertificateName, name: &str, grant: Grant| {
        CertificateRule::new(matches, Some(name.to_owned()), grant).unwrap()
    };
    let rules = vec![
        named(subject("CN=a"), "scheduler", on_rack(Role::Operator, "a")),
        named(
            CertificateName::Dns("a.example".to_owned()),
            "other",
            Grant::fleet_wide(Role::Admin),
        ),
        named(subject("CN=b"), "scheduler", Grant::fleet_wide(Role::Admin)),
        named(
            CertificateName::Dns("a.example".to_owned()),
            "scheduler",
            on_rack(Role::Viewer, "b"),
        ),
    ];
    let der = certificate(&[("CN", "a")], &[dns("a.example")]);
    let credentials = Credentials {
        authorization: None,
        certificate: Some(&der),
    };
    let scheduler = by(rules).authenticate(credentials).await.unwrap();
    assert_eq!(
        (scheduler.name(), scheduler.kind()),
        ("cert:scheduler", Kind::Certificate)
    );
    assert_eq!(
        scheduler.grants(),
        [on_rack(Role::Operator, "a"), on_rack(Role::Viewer, "b")]
    );
}

#[tokio::test]
async fn what_is_no_certificate_is_nobodys() {
    let by = by(vec![rule(subject("CN=a"))]);
    let der = certificate(&[("CN", "a")], &[]);
    is(&by, &der, Ok("cert:CN=a")).await;
    for broken in [
        &der[..der.len() - 1],
        &der[1..],
        &[],
        b"-----BEGIN CERTIFICATE-----",
    ] {
        is(&by, broken, UNKNOWN).await;
    }
}

#[test]
fn rules_that_could_never_match_are_refused() {
    let grant = || Grant::fleet_wide(Role::Viewer);
    for text in ["", "scheduler", "CN=a, O=Lab", "XX=a", "CN"] {
        let refused = CertificateRule::new(subject(text), None, grant());
        assert!(refused.is_err(), "{text}");
    }
    for name in ["", "a\nb"] {
        let refused = CertificateRule::new(subject("CN=a"), Some(name.to_owned()), grant());
        assert!(refused.is_err(), "{name:?}");
    }
    for empty in [
        CertificateName::Dns(String::new()),
        CertificateName::Uri(String::new()),
        CertificateName::Email(String::new()),
    ] {
        assert!(CertificateRule::new(empty, Some("a".to_owned()), grant()).is_err());
    }
}

#[tokio::test]
async fn a_certificate_is_its_holders_until_it_expires_however_long_the_connection_lasts() {
    let by = by(vec![rule(CertificateName::Dns("a.lab".to_owned()))]);
    let until = |year| {
        let mut params = CertificateParams::default();
        params.subject_alt_names = vec![dns("a.lab")];
        params.not_after = rcgen::date_time_ymd(year, 1, 1);
        let key = KeyPair::generate().unwrap();
        params.self_signed(&key).unwrap().der().to_vec()
    };
    is(&by, &until(9999), Ok("cert:a.lab")).await;
    let expired = AuthError::Expired {
        what: "certificate",
        who: Some("cert:a.lab".into()),
    };
    is(&by, &until(2001), Err(&expired)).await;
}
