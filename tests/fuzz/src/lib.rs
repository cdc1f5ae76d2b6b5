//! What the fuzz targets run: the checks of the tests crate, compiled without
//! the rest of it.
//!
//! The gateway's configuration is compiled from its source under its crate's
//! name, because that crate would bring the whole server into an instrumented
//! build. The replay of the corpora checks the crate itself.

extern crate self as fleetgate_gateway;

#[path = "../../src"]
mod tests {
    pub mod fuzz;
}

#[path = "../../../services/gateway/src"]
mod gateway {
    pub mod config;
}

pub use gateway::config::{self, Config, ConfigError};
pub use tests::fuzz as checks;
