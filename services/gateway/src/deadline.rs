//! The caller's deadline: read from `grpc-timeout`, and answered by us.
//!
//! tonic's own server answers an expired `grpc-timeout` with `CANCELLED` and
//! drops the handler. Here a layer turns the header into a [`Deadline`] in the
//! request's extensions and takes the header away, so that nothing below acts
//! on it: a command carries its deadline to the device's queue, where it is
//! answered with the command's fate, and every other call is bounded by
//! [`Deadline::bound`].
//!
//! A header that does not follow the specification is refused with
//! `INVALID_ARGUMENT`: a caller who believes in a deadline must not be left
//! without one.

use std::future::Future;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::future::{Either, Ready, ready};
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response};
use tokio::time::error::Elapsed;
use tokio::time::{Instant, timeout_at};
use tonic::Status;
use tonic::body::Body;
use tower::{Layer, Service};

use crate::status;

const GRPC_TIMEOUT: HeaderName = HeaderName::from_static("grpc-timeout");

/// The most digits that the specification allows.
const MAX_DIGITS: usize = 8;

/// When the caller stops waiting; `None` if it never does.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Deadline(Option<Instant>);

impl Deadline {
    /// What the layer has noted of a request.
    pub(crate) fn of<T>(request: &tonic::Request<T>) -> Self {
        request.extensions().get().copied().unwrap_or_default()
    }

    /// The moment itself.
    pub(crate) fn instant(self) -> Option<Instant> {
        self.0
    }

    /// True once the caller has stopped waiting.
    pub(crate) fn has_passed(self) -> bool {
        self.0.is_some_and(|deadline| deadline <= Instant::now())
    }

    /// What `work` gives, if it ends in time.
    pub(crate) async fn wait<T>(self, work: impl Future<Output = T>) -> Result<T, Elapsed> {
        match self.0 {
            Some(deadline) => timeout_at(deadline, work).await,
            None => Ok(work.await),
        }
    }

    /// `work`, if it ends in time.
    pub(crate) async fn bound<T>(
        self,
        work: impl Future<Output = Result<T, Status>>,
    ) -> Result<T, Status> {
        match self.0 {
            // A timer may take a millisecond to notice.
            Some(_) if self.has_passed() => Err(status::deadline_exceeded()),
            Some(deadline) => timeout_at(deadline, work)
                .await
                .unwrap_or_else(|_| Err(status::deadline_exceeded())),
            None => work.await,
        }
    }
}

/// A header that does not follow the specification.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("malformed grpc-timeout: expected at most 8 digits and one of the units H, M, S, m, u, n")]
pub(crate) struct MalformedTimeout;

/// Adds [`Deadlined`] to a service.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct DeadlineLayer;

impl<S> Layer<S> for DeadlineLayer {
    type Service = Deadlined<S>;

    fn layer(&self, inner: S) -> Deadlined<S> {
        Deadlined { inner }
    }
}

/// A service whose requests carry their [`Deadline`] as an extension instead
/// of a header.
#[derive(Debug, Clone)]
pub(crate) struct Deadlined<S> {
    inner: S,
}

impl<S, B> Service<Request<B>> for Deadlined<S>
where
    S: Service<Request<B>, Response = Response<Body>>,
{
    type Response = Response<Body>;
    type Error = S::Error;
    type Future = Either<S::Future, Ready<Result<Response<Body>, S::Error>>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        match take_timeout(request.headers_mut()) {
            Ok(timeout) => {
                let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
                request.extensions_mut().insert(Deadline(deadline));
                Either::Left(self.inner.call(request))
            }
            Err(error) => Either::Right(ready(Ok(status::malformed_timeout(error).into_http()))),
        }
    }
}

fn take_timeout(headers: &mut HeaderMap) -> Result<Option<Duration>, MalformedTimeout> {
    headers
        .remove(GRPC_TIMEOUT)
        .map(|value| parse(&value))
        .transpose()
}

fn parse(value: &HeaderValue) -> Result<Duration, MalformedTimeout> {
    let (&unit, digits) = value.as_bytes().split_last().ok_or(MalformedTimeout)?;
    if digits.is_empty() || digits.len() > MAX_DIGITS || !digits.iter().all(u8::is_ascii_digit) {
        return Err(MalformedTimeout);
    }
    let amount = digits
        .iter()
        .fold(0_u64, |amount, digit| amount * 10 + u64::from(digit - b'0'));
    match unit {
        b'H' => Ok(Duration::from_secs(amount * 60 * 60)),
        b'M' => Ok(Duration::from_secs(amount * 60)),
        b'S' => Ok(Duration::from_secs(amount)),
        b'm' => Ok(Duration::from_millis(amount)),
        b'u' => Ok(Duration::from_micros(amount)),
        b'n' => Ok(Duration::from_nanos(amount)),
        _ => Err(MalformedTimeout),
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::future::pending;

    use tonic::Code;
    use tower::{ServiceExt, service_fn};

    use super::*;

    #[test]
    fn every_unit_of_the_specification_is_read() {
        for (text, expected) in [
            ("2H", Duration::from_secs(7200)),
            ("2M", Duration::from_secs(120)),
            ("2S", Duration::from_secs(2)),
            ("500m", Duration::from_millis(500)),
            ("500u", Duration::from_micros(500)),
            ("500n", Duration::from_nanos(500)),
            ("0n", Duration::ZERO),
            ("99999999H", Duration::from_secs(99_999_999 * 3600)),
        ] {
            assert_eq!(
                parse(&HeaderValue::from_static(text)),
                Ok(expected),
                "{text}"
            );
        }
    }

    #[test]
    fn anything_else_is_malformed() {
        for text in [
            "",
            "m",
            "500",
            "-1S",
            "1.5S",
            "1 S",
            "123456789S",
            "5h",
            "+5S",
            "5µ",
        ] {
            let value = HeaderValue::from_bytes(text.as_bytes()).unwrap();
            assert_eq!(parse(&value), Err(MalformedTimeout), "{text}");
        }
    }

    async fn through(timeout: &'static str) -> Response<Body> {
        let inner = service_fn(async |request: Request<()>| {
            assert!(!request.headers().contains_key(GRPC_TIMEOUT));
            let deadline = request.extensions().get::<Deadline>().unwrap();
            assert_eq!(
                deadline.instant(),
                Some(Instant::now() + Duration::from_millis(500))
            );
            Ok::<_, Infallible>(Response::new(Body::empty()))
        });
        let request = Request::builder()
            .header(GRPC_TIMEOUT, timeout)
            .body(())
            .unwrap();
        DeadlineLayer.layer(inner).oneshot(request).await.unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn the_header_becomes_an_extension() {
        let response = through("500m").await;
        assert!(!response.headers().contains_key("grpc-status"));
    }

    #[tokio::test(start_paused = true)]
    async fn a_malformed_header_is_refused() {
        let response = through("soon").await;
        let status = Status::from_header_map(response.headers()).unwrap();
        assert_eq!(status.code(), Code::InvalidArgument);
    }

    #[tokio::test(start_paused = true)]
    async fn work_that_is_late_ends_with_deadline_exceeded() {
        let deadline = Deadline(Some(Instant::now() + Duration::from_secs(1)));
        let status = deadline
            .bound(pending::<Result<(), Status>>())
            .await
            .unwrap_err();
        assert_eq!(status.code(), Code::DeadlineExceeded);
        assert!(deadline.has_passed());
        assert!(deadline.bound(async { Ok(()) }).await.is_err(), "too late");
    }

    #[tokio::test]
    async fn work_without_a_deadline_takes_its_time() {
        assert_eq!(Deadline::default().bound(async { Ok(1) }).await.unwrap(), 1);
        assert!(!Deadline::default().has_passed());
    }
}
