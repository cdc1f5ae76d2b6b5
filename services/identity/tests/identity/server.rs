//! A server of keys on loopback, which can be told what to answer.

use std::io;
use std::sync::{Arc, Mutex};

use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;

/// How the next question is answered.
#[derive(Clone)]
pub(crate) enum Answer {
    /// With this text.
    Body(String),
    /// With this text, in two pieces.
    Chunked(String),
    /// With another status.
    Status(u16, &'static str),
    /// With more bytes than it says at first that there are.
    Endless,
    /// Not fully.
    Cut,
    /// Not at all, until the other side gives up.
    Silence,
}

pub(crate) struct Server {
    port: u16,
    answer: Arc<Mutex<Answer>>,
    asked: watch::Receiver<usize>,
    requests: Arc<Mutex<Vec<String>>>,
    _task: JoinSet<()>,
}

impl Server {
    pub(crate) async fn start(answer: Answer) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let answer = Arc::new(Mutex::new(answer));
        let requests = Arc::new(Mutex::new(Vec::new()));
        let (count, asked) = watch::channel(0);
        let mut task = JoinSet::new();
        let (next, seen) = (Arc::clone(&answer), Arc::clone(&requests));
        task.spawn(async move {
            let mut open = JoinSet::new();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let answer = next.lock().unwrap().clone();
                let (count, seen) = (count.clone(), Arc::clone(&seen));
                open.spawn(async move {
                    serve(stream, answer, &count, &seen).await.ok();
                });
            }
        });
        Self {
            port,
            answer,
            asked,
            requests,
            _task: task,
        }
    }

    pub(crate) async fn with(keys: &Value) -> Self {
        Self::start(Answer::Body(keys.to_string())).await
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}/keys?v=1", self.port)
    }

    pub(crate) fn answer(&self, answer: Answer) {
        *self.answer.lock().unwrap() = answer;
    }

    pub(crate) fn publish(&self, keys: &Value) {
        self.answer(Answer::Body(keys.to_string()));
    }

    /// How often it was asked.
    pub(crate) fn asked(&self) -> usize {
        *self.asked.borrow()
    }

    /// Waits until it was asked so often.
    pub(crate) async fn when_asked(&self, times: usize) {
        let mut asked = self.asked.clone();
        asked.wait_for(|asked| *asked >= times).await.unwrap();
    }

    pub(crate) fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

async fn serve<S: AsyncRead + AsyncWrite + Unpin>(
    mut stream: S,
    answer: Answer,
    count: &watch::Sender<usize>,
    seen: &Mutex<Vec<String>>,
) -> io::Result<()> {
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\n") {
        request.push(stream.read_u8().await?);
    }
    seen.lock()
        .unwrap()
        .push(String::from_utf8(request).unwrap());
    count.send_modify(|count| *count += 1);
    let head = |length: usize| {
        format!(
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n"
        )
    };
    match answer {
        Answer::Body(body) => {
            stream
                .write_all((head(body.len()) + &body).as_bytes())
                .await?;
        }
        Answer::Chunked(body) => {
            let (one, other) = body.split_at(body.len() / 2);
            let text = format!(
                "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n\
                 {:x}\r\n{one}\r\n{:x}\r\n{other}\r\n0\r\n\r\n",
                one.len(),
                other.len()
            );
            stream.write_all(text.as_bytes()).await?;
        }
        Answer::Status(status, more) => {
            let text = format!("HTTP/1.1 {status} Other\r\n{more}content-length: 0\r\n\r\n");
            stream.write_all(text.as_bytes()).await?;
        }
        Answer::Endless => {
            let head = "HTTP/1.1 200 OK\r\n\r\n{\"keys\":[";
            stream.write_all(head.as_bytes()).await?;
            loop {
                stream.write_all(&[b' '; 4096]).await?;
            }
        }
        Answer::Cut => {
            stream
                .write_all((head(1000) + "{\"keys\"").as_bytes())
                .await?;
        }
        Answer::Silence => {
            stream.read_u8().await?;
        }
    }
    stream.shutdown().await
}
