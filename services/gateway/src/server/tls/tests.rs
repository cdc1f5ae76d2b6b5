//! Files that change, as the watcher sees them.

use rcgen::{CertificateParams, KeyPair};
use tempfile::TempDir;

use super::*;

/// A certificate for a name, and its key.
fn pair(name: &str) -> (String, String) {
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new([name.to_owned()]).unwrap();
    (params.self_signed(&key).unwrap().pem(), key.serialize_pem())
}

struct Rig {
    directory: TempDir,
    watcher: Watcher,
    tls: Tls,
}

impl Rig {
    /// With a certificate for `first.lab`.
    async fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let files = TlsFiles {
            certificate: directory.path().join("certificate.pem"),
            key: directory.path().join("key.pem"),
            clients: None,
        };
        let (certificate, key) = pair("first.lab");
        std::fs::write(&files.certificate, certificate).unwrap();
        std::fs::write(&files.key, key).unwrap();
        let seen = seen(&files).await;
        let (current, tls) = watch::channel(Arc::new(load(&files).await.unwrap()));
        let watcher = Watcher {
            files,
            seen,
            failed: None,
            current,
        };
        Self {
            directory,
            watcher,
            tls: Tls(tls),
        }
    }

    /// As programs replace a file.
    fn put(&self, name: &str, text: &str) {
        let new = self.directory.path().join("new");
        std::fs::write(&new, text).unwrap();
        std::fs::rename(&new, self.directory.path().join(name)).unwrap();
    }
}

#[tokio::test]
async fn a_broken_file_leaves_what_there_was_until_it_is_mended() {
    let mut rig = Rig::new().await;
    let (certificate, key) = pair("second.lab");
    for broken in ["no certificate", "", certificate.as_str()] {
        rig.put("certificate.pem", broken);
        rig.watcher.look().await;
        assert!(rig.watcher.failed.is_some(), "{broken}");
        assert!(rig.tls.is_named("first.lab") && !rig.tls.is_named("second.lab"));
    }
    // The key of the new certificate comes after it.
    rig.put("key.pem", &key);
    rig.watcher.look().await;
    assert_eq!(rig.watcher.failed, None);
    assert!(rig.tls.is_named("second.lab") && !rig.tls.is_named("first.lab"));
}

#[tokio::test]
async fn a_file_that_is_gone_is_waited_for() {
    let mut rig = Rig::new().await;
    std::fs::remove_file(rig.directory.path().join("key.pem")).unwrap();
    rig.watcher.look().await;
    assert!(rig.watcher.failed.is_some());
    assert!(rig.tls.is_named("first.lab"));
    let (certificate, key) = pair("second.lab");
    rig.put("certificate.pem", &certificate);
    rig.put("key.pem", &key);
    rig.watcher.look().await;
    assert!(rig.tls.is_named("second.lab"));
}

#[tokio::test]
async fn what_has_not_changed_is_not_read_again() {
    let mut rig = Rig::new().await;
    let before = Arc::clone(&rig.tls.0.borrow());
    rig.watcher.look().await;
    assert!(Arc::ptr_eq(&before, &rig.tls.0.borrow()));
}

#[tokio::test]
async fn a_certificate_that_vouches_for_itself_is_all_there_is_to_trust() {
    let rig = Rig::new().await;
    assert!(rig.tls.vouches_for_itself());
}
