//! Pages in a browser on the same host: none of another origin is let in, by
//! either port, whatever it shows.

use fleetgate_tests::process::Process;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::Guarded;

/// The first line of what is answered to a request with these headers.
async fn status(address: &str, request: &str, headers: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!("{request} HTTP/1.1\r\n{headers}Connection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    // It may close without having read all.
    stream.read_to_end(&mut answer).await.ok();
    let answer = String::from_utf8_lossy(&answer);
    let line = answer.lines().next().unwrap_or_default();
    line.trim_start_matches("HTTP/1.1 ").to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_of_another_origin_is_refused_by_either_port_even_with_a_token() {
    let guarded = Guarded::configured("[admin]\nlisten = '127.0.0.1:0'\n").await;
    let record = guarded.records().pop().unwrap();
    let own = record.address.to_string();
    let sockets = Process::new(guarded.pid()).internet_sockets();
    let listening = sockets.iter().filter(|socket| socket.listens);
    let mut ports: Vec<_> = listening.map(|socket| socket.local.to_string()).collect();
    ports.retain(|address| *address != own);
    let [admin] = &ports[..] else {
        panic!("an admin server: {sockets:?}")
    };
    let call = "POST /fleetgate.v1.FleetService/GetGateway";
    let token = record.token.expose();
    let grpc_web = |host: &str, origin: &str| {
        format!(
            "Host: {host}\r\n{origin}Content-Type: application/grpc-web+proto\r\n\
             X-Grpc-Web: 1\r\nAuthorization: Bearer {token}\r\nContent-Length: 0\r\n"
        )
    };
    let page = |host: &str, origin: &str| format!("Host: {host}\r\n{origin}");
    let none = "";
    let same = format!("Origin: http://{own}\r\n");
    for (host, origin, expected) in [
        (own.as_str(), none, "200 OK"),
        (&own, &same, "200 OK"),
        ("evil.example", none, "403 Forbidden"),
        ("localhost.evil.example", none, "403 Forbidden"),
        (&own, "Origin: http://evil.example\r\n", "403 Forbidden"),
        (&own, "Origin: null\r\n", "403 Forbidden"),
        (
            "evil.example",
            "Origin: http://evil.example\r\n",
            "403 Forbidden",
        ),
    ] {
        let told = status(&own, call, &grpc_web(host, origin)).await;
        assert_eq!(told, expected, "{host} {origin}");
    }
    for (host, origin, expected) in [
        (admin.as_str(), none, "200 OK"),
        ("evil.example", none, "403 Forbidden"),
        (admin, "Origin: http://evil.example\r\n", "403 Forbidden"),
    ] {
        let told = status(admin, "GET /metrics", &page(host, origin)).await;
        assert_eq!(told, expected, "{host} {origin}");
    }
    guarded.end().await;
}
