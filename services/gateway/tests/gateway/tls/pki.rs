//! Authorities and certificates, made for a test and gone with it.

use std::time::{Duration, SystemTime};

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, SanType};
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject;

/// Who vouches for others.
pub(super) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pub(super) pem: String,
}

/// A certificate and its key, in PEM.
pub(super) struct Pair {
    pub(super) certificate: String,
    pub(super) key: String,
}

impl Authority {
    pub(super) fn new(name: &str) -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        Self {
            issuer: Issuer::new(params, key),
            pem,
        }
    }

    /// Of a server of these names.
    pub(super) fn server(&self, names: &[&str]) -> Pair {
        let names: Vec<_> = names.iter().map(ToString::to_string).collect();
        self.sign(&CertificateParams::new(names).unwrap())
    }

    /// Of a caller of this name.
    pub(super) fn client(&self, name: &str) -> Pair {
        let hour = Duration::from_hours(1);
        self.client_until(name, SystemTime::now() + hour)
    }

    /// The same, good until then.
    pub(super) fn client_until(&self, name: &str, until: SystemTime) -> Pair {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        let uri = format!("spiffe://lab/{name}").try_into().unwrap();
        params.subject_alt_names = vec![SanType::URI(uri)];
        params.not_after = until.into();
        self.sign(&params)
    }

    fn sign(&self, params: &CertificateParams) -> Pair {
        let key = KeyPair::generate().unwrap();
        let signed = params.signed_by(&key, &self.issuer).unwrap();
        Pair {
            certificate: signed.pem(),
            key: key.serialize_pem(),
        }
    }
}

impl Pair {
    /// The certificate as TLS has it.
    pub(super) fn der(&self) -> CertificateDer<'static> {
        CertificateDer::from_pem_slice(self.certificate.as_bytes()).unwrap()
    }
}
