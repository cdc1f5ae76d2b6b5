//! usbmuxd on real sockets.

use std::io::ErrorKind;

use fleetgate_simulator::{Ids, Lab, Scenario};
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpStream, UnixStream};

use crate::wire::{PORT_8100, ask, connect, plist, post, read_reply, result};

#[tokio::test]
async fn a_runner_is_reached_through_a_tcp_port() {
    let lab = Lab::start(Scenario::fleet(1));
    let address = lab.serve_tcp("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let mut stream = TcpStream::connect(address).await.unwrap();
    assert_eq!(
        result(&ask(&mut stream, 1, &connect(1, PORT_8100)).await),
        0
    );
    stream
        .write_all(&post(r#"{"command":"status"}"#))
        .await
        .unwrap();
    assert_eq!(read_reply(&mut stream).await.status, 200);
    lab.shutdown().await;
    assert_eq!(
        TcpStream::connect(address).await.unwrap_err().kind(),
        ErrorKind::ConnectionRefused
    );
}

#[tokio::test]
async fn a_unix_socket_comes_and_goes_with_the_daemon_and_the_lab() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("usbmuxd");
    let lab = Lab::start(Scenario::fleet(1));
    lab.serve_unix(&path).await.unwrap();
    let mut stream = UnixStream::connect(&path).await.unwrap();
    assert!(
        ask(&mut stream, 1, &plist("ListDevices", ""))
            .await
            .contains("Attached")
    );

    lab.stop_usbmuxd();
    crate::wire::read_all(&mut stream).await;
    while path.exists() {
        tokio::task::yield_now().await;
    }
    lab.start_usbmuxd(Ids::Fresh);
    let mut stream = loop {
        match UnixStream::connect(&path).await {
            Ok(stream) => break stream,
            Err(_) => tokio::task::yield_now().await,
        }
    };
    assert!(
        ask(&mut stream, 1, &plist("ListDevices", ""))
            .await
            .contains("Attached")
    );

    lab.shutdown().await;
    assert!(!path.exists());
}

#[tokio::test]
async fn a_socket_that_nobody_serves_is_replaced_and_one_in_use_is_not() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("usbmuxd");
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    assert!(path.exists(), "a dead socket lies there");
    let lab = Lab::start(Scenario::fleet(1));
    lab.serve_unix(&path).await.unwrap();
    UnixStream::connect(&path).await.unwrap();

    let other = Lab::start(Scenario::fleet(1));
    assert_eq!(
        other.serve_unix(&path).await.unwrap_err().kind(),
        ErrorKind::AddrInUse
    );
    UnixStream::connect(&path).await.unwrap();
}
