//! Who calls.
//!
//! Owns the ways in which a caller proves who it is: tokens of a file, client
//! certificates, JWTs, and the token that a gateway leaves for its own host;
//! and what a caller may do on which phones. Refuses to know which call needs
//! what, and how credentials arrive. Invariants: no secret is ever shown,
//! logged or written but where its owner is to find it, and whatever is not
//! known to be right is wrong.

mod authenticator;
mod certificate;
mod error;
mod guard;
mod instance;
mod jwks;
mod jwt;
mod principal;
mod role;
mod secret;
mod settings;
mod text;
mod tokens;

pub use authenticator::{Authenticator, Credentials};
pub use certificate::{CertificateName, CertificateRule};
pub use error::{AuthError, IdentityError, Invalid};
pub use instance::{InstanceRecord, Instances, ProcessStart, Published};
pub use jwks::{JwksSource, JwksUrl};
pub use principal::{Kind, Principal};
pub use role::{Grant, Role, UnknownRole};
pub use secret::Secret;
pub use settings::{AuthSettings, Binding, LocalToken, OidcSettings};
pub use text::{InvalidTokenId, TokenId};
pub use tokens::{NewToken, TokenFile, TokenInfo};
