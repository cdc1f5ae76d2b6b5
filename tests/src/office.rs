//! A gateway's admin server, as Prometheus reads it.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::Rig;

impl Rig {
    /// The gateway's metrics. It must have been configured with an admin server.
    pub async fn metrics(&self) -> String {
        let address = self.gateway.admin_addr().expect("an admin server");
        let mut stream = TcpStream::connect(address).await.expect("a connection");
        let request = "GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n";
        let sent = stream.write_all(request.as_bytes()).await;
        sent.expect("an open connection");
        let mut answer = String::new();
        let read = stream.read_to_string(&mut answer).await;
        read.expect("an answer");
        let (head, body) = answer.split_once("\r\n\r\n").expect("a head and a body");
        assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
        body.to_owned()
    }

    /// One of them; 0 if there is none of that name with those attributes, in
    /// the order of the alphabet.
    pub async fn metric(&self, name: &str) -> u64 {
        let metrics = self.metrics().await;
        let line = metrics.lines().find_map(|line| line.strip_prefix(name));
        line.map_or(0, |value| value.trim().parse().expect("a number"))
    }
}
