//! What the doctor looks at on this host. Nothing is changed: a file that is
//! made to see whether one can be has no name, and is gone at once.

use std::fs::OpenOptions;
use std::io::{self, ErrorKind};
use std::path::Path;
use std::time::Duration;

use anyhow::anyhow;
use fleetgate_device::Address;
use fleetgate_gateway::Config;
use fleetgate_usbmux::{Client, ConnectionType, Decoder, Reply, Request};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::evidence::{Host, LedgerFile, Local, Mux, Parts, Space};
use crate::report::in_words;

/// How long a usbmuxd may take.
const PATIENCE: Duration = Duration::from_secs(2);

/// The number of the one request on a connection.
const TAG: u32 = 1;

/// All that a gateway with this configuration would need.
pub(super) async fn look(config: Option<&Path>) -> Local {
    let parts = match Config::load(config) {
        Ok(config) => Ok(Parts {
            hosts: hosts(config.usbmuxds()).await,
            ledger: ledger(&config.ledger.path),
        }),
        Err(error) => Err(in_words(&error.into())),
    };
    Local {
        config: config.map(Path::to_owned),
        parts,
    }
}

/// The room of the file system that a path is on, or would be.
pub(super) fn space(path: &Path) -> Option<Space> {
    let there = path.ancestors().find(|path| path.exists())?;
    let found = rustix::fs::statvfs(there).ok()?;
    Some(Space {
        free: found.f_bavail.saturating_mul(found.f_frsize),
        total: found.f_blocks.saturating_mul(found.f_frsize),
    })
}

/// Asks every usbmuxd at once; the answers are in the order of the hosts.
async fn hosts(usbmuxds: Vec<(String, Address)>) -> Vec<Host> {
    let mut asking = JoinSet::new();
    for (at, (name, address)) in usbmuxds.into_iter().enumerate() {
        asking.spawn(async move {
            let host = Host {
                mux: mux(&address).await,
                address: address.to_string(),
                name,
            };
            (at, host)
        });
    }
    let mut hosts = asking.join_all().await;
    hosts.sort_by_key(|(at, _)| *at);
    hosts.into_iter().map(|(_, host)| host).collect()
}

async fn mux(address: &Address) -> Mux {
    let asked = async {
        match address {
            Address::Unix(path) => list(UnixStream::connect(path).await?).await,
            Address::Tcp(address) => list(TcpStream::connect(address).await?).await,
        }
    };
    match timeout(PATIENCE, asked).await {
        Ok(Ok(mux)) => mux,
        Ok(Err(error)) => failed(&error),
        Err(_) => Mux::Silent,
    }
}

fn failed(error: &anyhow::Error) -> Mux {
    let kind = error.downcast_ref::<io::Error>().map(io::Error::kind);
    match kind {
        Some(ErrorKind::NotFound) => Mux::Missing,
        Some(ErrorKind::ConnectionRefused) => Mux::Refused,
        Some(ErrorKind::PermissionDenied) => Mux::Forbidden,
        Some(_) | None => Mux::Odd(in_words(error)),
    }
}

/// Has the phones listed.
async fn list(mut stream: impl AsyncRead + AsyncWrite + Unpin) -> anyhow::Result<Mux> {
    let client = Client::new("fleetgate-doctor", env!("CARGO_PKG_VERSION"));
    let request = Request::ListDevices.encode(&client, TAG)?;
    stream.write_all(&request).await?;
    stream.flush().await?;
    let mut decoder = Decoder::new();
    let packet = loop {
        if let Some(packet) = decoder.next_packet()? {
            break packet;
        }
        if stream.read_buf(decoder.input()).await? == 0 {
            return Err(anyhow!("it closed the connection"));
        }
    };
    match Reply::decode(&packet, TAG)? {
        Reply::DeviceList(list) => {
            let is_cabled = |kind: &ConnectionType| *kind == ConnectionType::Usb;
            let kinds = list.phones.iter().map(|phone| &phone.connection);
            let cabled = kinds.filter(|kind| is_cabled(kind)).count();
            Ok(Mux::Phones {
                cabled,
                networked: list.phones.len() - cabled,
            })
        }
        Reply::Result(result) => Err(anyhow!("it answered with result {}", result.number())),
        Reply::Buid(_) | Reply::PairRecord(_) | Reply::Listeners(_) => {
            Err(anyhow!("it answered another question"))
        }
    }
}

fn ledger(path: &Path) -> LedgerFile {
    LedgerFile {
        path: path.to_owned(),
        unwritable: writable(path).err().map(|error| in_words(&error)),
        space: space(path),
    }
}

fn writable(path: &Path) -> anyhow::Result<()> {
    if path.exists() {
        // Nothing is written, and nothing is cut off.
        OpenOptions::new().append(true).open(path)?;
    }
    let directory = path
        .parent()
        .into_iter()
        .flat_map(Path::ancestors)
        .find(|path| path.exists())
        .unwrap_or(Path::new("."));
    tempfile::tempfile_in(directory)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use fleetgate_simulator::{Lab, Scenario};
    use tokio::net::UnixListener;

    use super::*;

    #[tokio::test]
    async fn a_usbmuxd_that_answers_is_counted_and_any_other_is_told_apart() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("usbmuxd");
        let at = |path: &Path| Address::Unix(path.to_owned());
        assert_eq!(mux(&at(&path)).await, Mux::Missing);

        let lab = Lab::start(Scenario::fleet(2));
        lab.serve_unix(&path).await.unwrap();
        let phones = Mux::Phones {
            cabled: 2,
            networked: 0,
        };
        assert_eq!(mux(&at(&path)).await, phones);
        lab.shutdown().await;

        let left_behind = directory.path().join("dead");
        drop(UnixListener::bind(&left_behind).unwrap());
        assert_eq!(mux(&at(&left_behind)).await, Mux::Refused);

        let rude = directory.path().join("rude");
        let listener = UnixListener::bind(&rude).unwrap();
        let address = at(&rude);
        let (answer, accepted) = tokio::join!(mux(&address), async {
            let (mut stream, _) = listener.accept().await.unwrap();
            stream.write_all(b"HTTP/1.1 400 Bad Request").await
        });
        accepted.unwrap();
        assert!(matches!(answer, Mux::Odd(_)), "{answer:?}");
    }

    #[tokio::test]
    async fn hosts_are_told_in_the_order_of_the_configuration() {
        let host = |name: &str| (name.to_owned(), Address::Unix("/nowhere".into()));
        let told = hosts(vec![host("b"), host("a"), host("c")]).await;
        let names: Vec<_> = told.iter().map(|host| host.name.as_str()).collect();
        assert_eq!(names, ["b", "a", "c"]);
    }

    #[test]
    fn a_ledger_can_be_where_its_directory_can_be_made() {
        let directory = tempfile::tempdir().unwrap();
        let below = directory.path().join("not/yet/there/ledger.db");
        let found = ledger(&below);
        assert_eq!(found.unwritable, None);
        assert!(found.space.is_some_and(|space| space.total > 0));

        let file = directory.path().join("file");
        std::fs::write(&file, "").unwrap();
        assert!(ledger(&file.join("ledger.db")).unwritable.is_some());
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
    }
}
