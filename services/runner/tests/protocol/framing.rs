//! The server's HTTP framing against bytes written down from the
//! specification, whole and cut at every byte.

use bytes::Bytes;
use fleetgate_runner::MAX_REQUEST_BYTES;
use fleetgate_runner::http::{FrameError, RequestDecoder, response};

const STATUS: &[u8] = b"POST /command HTTP/1.1\r\n\
    Host: 127.0.0.1\r\n\
    Content-Type: application/json\r\n\
    Content-Length: 20\r\n\
    Connection: close\r\n\
    \r\n\
    {\"command\":\"status\"}";

type Frame = Result<Option<Bytes>, FrameError>;

fn whole(bytes: &[u8]) -> Frame {
    RequestDecoder::new().push(bytes)
}

fn request(headers: &str, body: &str) -> Vec<u8> {
    format!("POST / HTTP/1.1\r\n{headers}\r\n{body}").into_bytes()
}

#[test]
fn the_body_of_a_request_is_taken_as_its_header_says() {
    assert_eq!(
        whole(STATUS),
        Ok(Some(Bytes::from_static(b"{\"command\":\"status\"}")))
    );
}

#[test]
fn a_request_cut_at_any_byte_is_the_same_request() {
    for cut in 0..STATUS.len() {
        let mut decoder = RequestDecoder::new();
        assert_eq!(decoder.push(&STATUS[..cut]), Ok(None), "at {cut}");
        assert_eq!(decoder.push(&STATUS[cut..]), whole(STATUS), "at {cut}");
    }
}

#[test]
fn method_path_and_other_headers_are_ignored() {
    let request =
        b"GARBAGE\r\nTransfer-Encoding: chunked\r\nno colon\r\ncontent-LENGTH:2\r\n\r\n{}";
    assert_eq!(whole(request), Ok(Some(Bytes::from_static(b"{}"))));
}

#[test]
fn the_last_content_length_wins() {
    let ok = request(
        "Content-Length: 9\r\nContent-Length: nine\r\ncontent-length: 2\r\n",
        "{}",
    );
    assert_eq!(whole(&ok), Ok(Some(Bytes::from_static(b"{}"))));
    let bad = request("Content-Length: 2\r\nContent-Length: two\r\n", "{}");
    assert_eq!(whole(&bad), Err(FrameError::NoContentLength));
}

#[test]
fn a_header_without_a_usable_length_is_refused_as_soon_as_it_ends() {
    for headers in [
        "",
        "Host: 127.0.0.1\r\n",
        "Content-Length:\r\n",
        "Content-Length: -1\r\n",
        "Content-Length: +1\r\n",
        "Content-Length: 1.0\r\n",
        "Content-Length: 0x10\r\n",
        "Content-Length: 1 1\r\n",
        "X-Content-Length: 1\r\n",
    ] {
        assert_eq!(
            whole(&request(headers, "")),
            Err(FrameError::NoContentLength),
            "{headers:?}"
        );
    }
    assert_eq!(FrameError::NoContentLength.status(), 400);
}

#[test]
fn the_request_line_is_no_header() {
    let request = b"Content-Length: 2\r\nHost: 127.0.0.1\r\n\r\n{}";
    assert_eq!(whole(request), Err(FrameError::NoContentLength));
}

#[test]
fn an_empty_body_is_a_body() {
    assert_eq!(
        whole(&request("Content-Length: 0\r\n", "")),
        Ok(Some(Bytes::new()))
    );
}

#[test]
fn a_declared_length_over_the_limit_is_refused_before_its_body_comes() {
    for length in [
        "2097153",
        "18446744073709551616",
        "999999999999999999999999999999",
    ] {
        let header = request(&format!("Content-Length: {length}\r\n"), "");
        assert_eq!(whole(&header), Err(FrameError::TooLarge), "{length}");
    }
    assert_eq!(FrameError::TooLarge.status(), 413);
}

#[test]
fn the_limit_counts_the_header_too() {
    let header = request("Content-Length: 2097000\r\n", "");
    let mut fits = header.clone();
    fits.resize(header.len() + 2_097_000, b' ');
    assert!(fits.len() <= MAX_REQUEST_BYTES);
    assert_eq!(
        whole(&fits).map(|body| body.map(|body| body.len())),
        Ok(Some(2_097_000))
    );

    let header = request("Content-Length: 2097152\r\n", "");
    let mut decoder = RequestDecoder::new();
    assert_eq!(decoder.push(&header), Ok(None));
    let rest = vec![b' '; MAX_REQUEST_BYTES - header.len()];
    assert_eq!(decoder.push(&rest), Ok(None));
    assert_eq!(decoder.push(b" "), Err(FrameError::TooLarge));
}

#[test]
fn a_header_that_never_ends_is_refused_at_the_limit() {
    let mut decoder = RequestDecoder::new();
    assert_eq!(decoder.push(&vec![b'a'; MAX_REQUEST_BYTES]), Ok(None));
    assert_eq!(decoder.push(b"\r\n\r\n"), Err(FrameError::TooLarge));
}

#[test]
fn a_connection_carries_one_request() {
    let mut decoder = RequestDecoder::new();
    let twice = [STATUS, STATUS].concat();
    assert_eq!(decoder.push(&twice), whole(STATUS));
    assert_eq!(decoder.push(STATUS), Ok(None));

    let mut decoder = RequestDecoder::new();
    assert_eq!(
        decoder.push(&request("", "")),
        Err(FrameError::NoContentLength)
    );
    assert_eq!(decoder.push(STATUS), Ok(None));
}

#[test]
fn a_reply_is_framed_as_the_specification_says() {
    assert_eq!(
        response(200, b"{\"ok\":true}"),
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 11\r\n\
          Connection: close\r\n\r\n{\"ok\":true}"
    );
    for status in [400, 413, 500] {
        let reply = response(status, b"");
        assert!(reply.starts_with(format!("HTTP/1.1 {status} Error\r\n").as_bytes()));
    }
}

#[test]
fn a_decoder_is_formatted_without_what_it_holds() {
    let mut decoder = RequestDecoder::new();
    decoder
        .push(&request("Content-Length: 99\r\n", "{\"text\":\"hunter2"))
        .unwrap();
    let formatted = format!("{decoder:?}");
    assert!(formatted.contains("bytes"), "{formatted}");
    assert!(!formatted.contains("hunter2"), "{formatted}");
}
