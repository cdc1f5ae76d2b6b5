//! Who this side is to a gateway, and whom it trusts: what the options say,
//! and what a gateway of this host has published for its own user.
//!
//! A secret comes from a file or from the environment and never from an
//! argument, which the list of processes would show. It is read anew for every
//! connection: a gateway of this host that was started anew has another token.
//!
//! Invariant: no token leaves this host over a connection that can be read.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail, ensure};
use clap::Args;
use fleetgate_identity::Secret;
use tonic::codegen::http::header::HeaderValue;

use super::found::{self, Found};
use super::server::Server;
use super::tls::{Sources, Tls};

/// The variable that holds a token.
const TOKEN: &str = "FLEETGATE_TOKEN";

/// The bits of a mode that are about others than the owner.
const OTHERS: u32 = 6;

/// More than any token or JWT has.
const MAX_TOKEN_BYTES: u64 = 64 * 1024;

/// The options.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Client options")]
pub(crate) struct Access {
    /// A file with the token that says who calls, readable by its owner alone;
    /// `FLEETGATE_TOKEN` holds a token itself. There is no option that does: it
    /// would show in the list of processes
    #[arg(
        long,
        global = true,
        env = "FLEETGATE_TOKEN_FILE",
        value_name = "FILE",
        hide_env_values = true
    )]
    token_file: Option<PathBuf>,
    /// The authorities that the gateway's certificate may be from, as PEM;
    /// otherwise those of this system
    #[arg(
        long,
        global = true,
        env = "FLEETGATE_CA",
        value_name = "FILE",
        hide_env_values = true
    )]
    ca: Option<PathBuf>,
    /// The certificate that says who calls, as PEM
    #[arg(
        long,
        global = true,
        env = "FLEETGATE_CERT",
        value_name = "FILE",
        hide_env_values = true
    )]
    cert: Option<PathBuf>,
    /// Its private key, as PEM
    #[arg(
        long,
        global = true,
        env = "FLEETGATE_KEY",
        value_name = "FILE",
        hide_env_values = true
    )]
    key: Option<PathBuf>,
    /// The name that the gateway's certificate has, if it is not the one that
    /// --server has
    #[arg(
        long,
        global = true,
        env = "FLEETGATE_SERVER_NAME",
        value_name = "NAME",
        hide_env_values = true
    )]
    server_name: Option<String>,
    /// What [`TOKEN`] holds.
    #[arg(skip)]
    token: Option<Secret>,
}

/// What one connection needs of it.
#[derive(Debug)]
pub(super) struct Settled {
    /// Where to connect to: for a gateway of this host the address that it
    /// published, since of a name several may be meant.
    pub(super) server: Server,
    pub(super) tls: Option<Tls>,
    pub(super) authorization: Option<HeaderValue>,
}

impl Access {
    /// With what the environment says.
    pub(crate) fn with_environment(mut self) -> anyhow::Result<Self> {
        self.token = match std::env::var_os(TOKEN) {
            None => None,
            Some(token) if token.is_empty() => None,
            Some(token) => {
                let Ok(token) = token.into_string() else {
                    bail!("{TOKEN} is no text");
                };
                Some(Secret::from(token))
            }
        };
        Ok(self)
    }

    /// The variables that say the same to another process, which may be in
    /// another directory.
    pub(crate) fn variables(&self) -> Vec<(&'static str, String)> {
        let absolute = |path: &PathBuf| {
            let path = std::path::absolute(path).unwrap_or_else(|_| path.clone());
            path.display().to_string()
        };
        let said = [
            (
                "FLEETGATE_TOKEN_FILE",
                self.token_file.as_ref().map(absolute),
            ),
            ("FLEETGATE_CA", self.ca.as_ref().map(absolute)),
            ("FLEETGATE_CERT", self.cert.as_ref().map(absolute)),
            ("FLEETGATE_KEY", self.key.as_ref().map(absolute)),
            ("FLEETGATE_SERVER_NAME", self.server_name.clone()),
        ];
        said.into_iter()
            .filter_map(|(name, said)| Some((name, said?)))
            .collect()
    }

    /// What it comes to for this gateway, now.
    pub(super) fn settle(&self, server: &Server) -> anyhow::Result<Settled> {
        let identity = match (&self.cert, &self.key) {
            (Some(certificate), Some(key)) => Some((certificate.as_path(), key.as_path())),
            (None, None) => None,
            (Some(_), None) => bail!("--cert needs its --key"),
            (None, Some(_)) => bail!("--key needs its --cert"),
        };
        let own = self.own_token()?;
        let found = match found::at(server) {
            Ok(found) => found,
            // What was published here is not what this depends on.
            Err(_) if own.is_some() || identity.is_some() || !server.is_loopback() => None,
            Err(error) => return Err(error.into()),
        };
        let place = match &found {
            Some(found) => found.server()?,
            None => server.clone(),
        };
        let token = match own {
            Some(token) => Some(token),
            // A certificate says who calls already.
            None if identity.is_some() => None,
            None => found.as_ref().map(Found::token),
        };
        if server.is_tls() {
            let published = found.as_ref().and_then(Found::ca);
            let (host, _) = server.place();
            let tls = Tls::new(Sources {
                ca: self.ca.as_deref().or(published),
                identity,
                name: self.server_name.as_deref().unwrap_or(host),
            })?;
            return Ok(Settled {
                server: place,
                tls: Some(tls),
                authorization: token.as_ref().map(bearer).transpose()?,
            });
        }
        ensure!(
            identity.is_none(),
            "a certificate is of use over TLS alone: name the gateway as https://"
        );
        ensure!(
            token.is_none() || server.is_loopback(),
            "the token is not sent to {server}: whoever is in between could read it; name the \
             gateway as https://"
        );
        Ok(Settled {
            server: place,
            tls: None,
            authorization: token.as_ref().map(bearer).transpose()?,
        })
    }

    /// The token that the options name.
    fn own_token(&self) -> anyhow::Result<Option<Secret>> {
        match &self.token_file {
            Some(path) => read(path)
                .with_context(|| format!("the token in {} cannot be used", path.display()))
                .map(Some),
            None => Ok(self.token.clone()),
        }
    }
}

/// The header that says who calls.
fn bearer(token: &Secret) -> anyhow::Result<HeaderValue> {
    let header = format!("Bearer {}", token.expose());
    let Ok(mut header) = HeaderValue::try_from(header) else {
        bail!("the token has characters that no token has");
    };
    header.set_sensitive(true);
    Ok(header)
}

/// The token in a file that nobody else may read.
fn read(path: &Path) -> anyhow::Result<Secret> {
    let mut file = File::open(path)?;
    let found = file.metadata()?;
    let mode = found.permissions().mode();
    ensure!(
        mode.trailing_zeros() >= OTHERS,
        "others may read it: chmod 600 {}",
        path.display()
    );
    let (owner, us) = (found.uid(), rustix::process::geteuid().as_raw());
    ensure!(owner == us, "it belongs to another user");
    let mut text = String::new();
    let length = file
        .by_ref()
        .take(MAX_TOKEN_BYTES + 1)
        .read_to_string(&mut text)?;
    let text = Secret::from(text);
    ensure!(
        u64::try_from(length).is_ok_and(|length| length <= MAX_TOKEN_BYTES),
        "it is too long"
    );
    let token = text.expose().trim();
    ensure!(!token.is_empty(), "it is empty");
    ensure!(
        !token.contains(char::is_whitespace),
        "it holds more than one token"
    );
    Ok(Secret::from(token.to_owned()))
}

#[cfg(test)]
mod tests;
