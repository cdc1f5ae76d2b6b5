//! The server: a listener, its connections, and what every call goes through.
//!
//! ```text
//! accept -> connection (HTTP/2, or HTTP/1.1 for gRPC-Web)
//!             same origin   no page of another origin gets any further
//!             gRPC-Web      translated to gRPC
//!             span          one per call, ends with the reply's last byte
//!             deadline      grpc-timeout becomes ours
//!             routes        health, reflection, fleetgate.v1
//! ```
//!
//! gRPC-Web is served to programs and to pages of the same origin. No page of
//! another origin is let in, and no CORS header is ever sent.

mod connections;
mod metadata;
mod origin;
mod routes;
mod span;

pub(crate) use connections::{Connections, Limits};
pub(crate) use origin::is_foreign;
pub(crate) use routes::{Health, routes};
