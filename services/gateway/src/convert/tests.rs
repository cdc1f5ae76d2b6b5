//! Requests field by field, replies value by value, and the ledger's queries.

mod ledger;
mod replies;
mod requests;

#[expect(clippy::unnecessary_wraps, reason = "a field of a message is optional")]
fn duration(seconds: i64, nanos: i32) -> Option<prost_types::Duration> {
    Some(prost_types::Duration { seconds, nanos })
}
