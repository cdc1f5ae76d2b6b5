//! The server: a listener, its connections, and what every call goes through.
//!
//! ```text
//! accept -> connection (HTTP/2, or HTTP/1.1 for gRPC-Web)
//!             gRPC-Web      translated to gRPC
//!             span          one per call, ends with the reply's last byte
//!             deadline      grpc-timeout becomes ours
//!             routes        health, reflection, fleetgate.v1
//! ```
//!
//! gRPC-Web is served to programs and to pages of the same origin. No page of
//! another origin is let in: no CORS header is ever sent, and a browser then
//! refuses such a page the call.

mod connections;
mod routes;
mod span;

pub(crate) use connections::{Connections, Limits};
pub(crate) use routes::{Health, routes};
