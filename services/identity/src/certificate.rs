//! Whose a client certificate is.
//!
//! Owns the rules by which a certificate's names become a principal, for as long
//! as it is good: a connection may last longer. Refuses to verify certificates:
//! what comes here was verified by TLS when the connection began. Invariant: names
//! are compared whole; a part of a name, or a name that only prints like
//! another, never matches.

use std::collections::BTreeSet;
use std::str::FromStr;
use std::time::SystemTime;

use x509_cert::Certificate;
use x509_cert::attr::AttributeTypeAndValue;
use x509_cert::der::asn1::{Ia5StringRef, ObjectIdentifier, PrintableStringRef, TeletexStringRef};
use x509_cert::der::{Any, Decode, Tag, Tagged};
use x509_cert::ext::pkix::SubjectAltName;
use x509_cert::ext::pkix::name::GeneralName;
use x509_cert::name::RdnSequence;

use crate::error::{AuthError, IdentityError, Invalid};
use crate::principal::{Kind, Principal};
use crate::role::Grant;

/// Which certificates are whose.
///
/// A certificate gets the name of the first rule that it matches, and the
/// grants of all rules of that name that it matches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CertificateRule {
    wanted: Wanted,
    name: String,
    grant: Grant,
}

/// A name in a certificate that a rule asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CertificateName {
    /// The subject, as in RFC 4514: `CN=scheduler,O=Lab`, the most particular
    /// part first. Letter case and all parts count.
    Subject(String),
    /// A DNS name among the alternative names. No wildcards; case is ignored.
    Dns(String),
    /// A URI among the alternative names, such as a SPIFFE id.
    Uri(String),
    /// An e-mail address among the alternative names.
    Email(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Wanted {
    Subject(Subject),
    Dns(String),
    Uri(String),
    Email(String),
}

/// The attributes of a subject, the most general part first. What kind of
/// string a value is kept in says nothing about whose it is.
type Subject = Vec<BTreeSet<(ObjectIdentifier, Value)>>;

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Value {
    Text(String),
    Other(Tag, Vec<u8>),
}

impl CertificateRule {
    /// Certificates with this name are `cert:<name>`; without one, the name
    /// that is asked for is that, too.
    pub fn new(
        matches: CertificateName,
        name: Option<String>,
        grant: Grant,
    ) -> Result<Self, IdentityError> {
        let (wanted, own) = match matches {
            CertificateName::Subject(text) => (Wanted::Subject(subject_in(&text)?), text),
            CertificateName::Dns(text) => (Wanted::Dns(text.to_ascii_lowercase()), text),
            CertificateName::Uri(text) => (Wanted::Uri(text.clone()), text),
            CertificateName::Email(text) => (Wanted::Email(text.clone()), text),
        };
        if own.is_empty() {
            return Err(unusable(&own, "it matches nothing".to_owned()));
        }
        let name = name.unwrap_or(own);
        if name.is_empty() || name.chars().any(char::is_control) {
            return Err(unusable(&name, "it is no name".to_owned()));
        }
        Ok(Self {
            wanted,
            name,
            grant,
        })
    }

    fn is_for(&self, certificate: &Found) -> bool {
        match &self.wanted {
            Wanted::Subject(subject) => !subject.is_empty() && *subject == certificate.subject,
            Wanted::Dns(name) => {
                let mut names = certificate.dns.iter();
                names.any(|there| there.eq_ignore_ascii_case(name))
            }
            Wanted::Uri(name) => certificate.uris.contains(name),
            Wanted::Email(name) => certificate.emails.contains(name),
        }
    }
}

fn unusable(value: &str, reason: String) -> IdentityError {
    IdentityError::Setting {
        what: "the certificate rule",
        value: value.to_owned(),
        reason,
    }
}

fn subject_in(text: &str) -> Result<Subject, IdentityError> {
    let subject = RdnSequence::from_str(text);
    let subject = subject.map_err(|_| {
        let reason = "a subject is written like `CN=scheduler,O=Lab`, without spaces after commas";
        unusable(text, reason.to_owned())
    })?;
    Ok(subject_of(&subject))
}

fn subject_of(names: &RdnSequence) -> Subject {
    let attributes =
        |attribute: &AttributeTypeAndValue| (attribute.oid, value_of(&attribute.value));
    let parts = names.as_ref().iter();
    parts
        .map(|part| part.iter().map(attributes).collect())
        .collect()
}

fn value_of(value: &Any) -> Value {
    let tag = value.tag();
    let text = if tag == Tag::Utf8String {
        str::from_utf8(value.value()).ok().map(str::to_owned)
    } else if tag == Tag::PrintableString {
        let text = PrintableStringRef::try_from(value).ok();
        text.map(|text| text.to_string())
    } else if tag == Tag::Ia5String {
        let text = Ia5StringRef::try_from(value).ok();
        text.map(|text| text.to_string())
    } else if tag == Tag::TeletexString {
        let text = TeletexStringRef::try_from(value).ok();
        text.map(|text| text.to_string())
    } else {
        None
    };
    match text {
        Some(text) => Value::Text(text),
        None => Value::Other(tag, value.value().to_vec()),
    }
}

/// The names in a certificate.
#[derive(Debug)]
struct Found {
    /// As it is written in a rule.
    written: String,
    subject: Subject,
    dns: Vec<String>,
    uris: Vec<String>,
    emails: Vec<String>,
    /// The last moment at which it is good.
    until: SystemTime,
}

impl Found {
    fn read(der: &[u8]) -> Option<Self> {
        let certificate = Certificate::from_der(der).ok()?;
        let certificate = certificate.tbs_certificate();
        let subject: &RdnSequence = certificate.subject().as_ref();
        let mut found = Self {
            written: subject.to_string(),
            subject: subject_of(subject),
            dns: Vec::new(),
            uris: Vec::new(),
            emails: Vec::new(),
            until: certificate.validity().not_after.to_system_time(),
        };
        let alternatives = certificate.get_extension::<SubjectAltName>().ok()?;
        let alternatives = alternatives.map_or_else(Vec::new, |(_, names)| names.0);
        for name in alternatives {
            match name {
                GeneralName::DnsName(name) => found.dns.push(name.to_string()),
                GeneralName::UniformResourceIdentifier(name) => found.uris.push(name.to_string()),
                GeneralName::Rfc822Name(name) => found.emails.push(name.to_string()),
                GeneralName::OtherName(_)
                | GeneralName::DirectoryName(_)
                | GeneralName::EdiPartyName(_)
                | GeneralName::IpAddress(_)
                | GeneralName::RegisteredId(_) => {}
            }
        }
        Some(found)
    }
}

/// Whose a certificate is, by these rules.
pub(crate) fn whose(
    rules: &[CertificateRule],
    der: &[u8],
    now: SystemTime,
) -> Result<Principal, AuthError> {
    let Some(found) = Found::read(der) else {
        tracing::warn!("a client certificate that TLS has verified cannot be read");
        return Err(Invalid::Certificate.into());
    };
    let matching: Vec<_> = rules.iter().filter(|rule| rule.is_for(&found)).collect();
    let Some(first) = matching.first() else {
        tracing::info!(
            subject = found.written, dns = ?found.dns, uri = ?found.uris, email = ?found.emails,
            "no rule matches a client certificate"
        );
        return Err(Invalid::Certificate.into());
    };
    let grants = matching.iter().filter(|rule| rule.name == first.name);
    let grants = grants.map(|rule| rule.grant.clone()).collect();
    let name = format!("{}:{}", Kind::Certificate.as_str(), first.name);
    if found.until < now {
        return Err(AuthError::expired("certificate", &name));
    }
    Ok(Principal::new(Kind::Certificate, name, grants))
}
