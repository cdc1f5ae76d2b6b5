//! The server: a listener, its connections, and what every call goes through.
//!
//! ```text
//! accept -> TLS, where there are certificates
//!        -> connection (HTTP/2, or HTTP/1.1 for gRPC-Web)
//!             same origin   no page of another origin gets any further
//!             gRPC-Web      translated to gRPC
//!             span          one per call, ends with the reply's last byte
//!             metadata      no more of it than there is room for
//!             deadline      grpc-timeout becomes ours
//!             access        who calls, and may they
//!             standing      a connection of strangers does not stay
//!             routes        health, reflection, fleetgate.v1
//! ```
//!
//! gRPC-Web is served to programs and to pages of the same origin. No page of
//! another origin is let in, and no CORS header is ever sent.

mod access;
mod connections;
mod lasting;
mod metadata;
mod origin;
mod routes;
mod span;
mod strangers;
mod tls;

pub(crate) use access::Admission;
pub(crate) use connections::{Connections, Limits, Service};
pub(crate) use origin::Hosts;
pub(crate) use routes::{Health, routes};
pub(crate) use tls::{Tls, TlsTask};

pub use tls::TlsError;
