//! `token`: the tokens that a gateway takes. Works on the gateway's file and asks
//! no gateway; one that runs takes notice by itself.
//!
//! Invariant: a token is printed once, to stdout, by the run that made it.

use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use anyhow::Context as _;
use clap::{Args, Subcommand};
use fleetgate_gateway::Config;
use fleetgate_identity::{Grant, NewToken, Role, TokenFile};

use crate::args::ShortOutput;
use crate::exit::Misuse;
use crate::labels::{self, Label};
use crate::output::{Format, line, note, print};
use crate::view::token::{MadeView, TokenView, TokensView};
use crate::when;

/// Make, list and revoke the tokens of a gateway.
#[derive(Debug, Args)]
pub(crate) struct Token {
    #[command(subcommand)]
    verb: TokenVerb,
}

#[derive(Debug, Subcommand)]
enum TokenVerb {
    /// Make a token, and print it this once
    Create(Create),
    /// List the tokens
    List(List),
    /// Revoke a token
    Revoke(Revoke),
}

/// Which file.
#[derive(Debug, Args)]
struct Place {
    /// The file of the tokens; otherwise the one that the configuration names
    #[arg(long, value_name = "FILE")]
    tokens: Option<PathBuf>,
    /// The gateway's configuration
    #[arg(long, env = "FLEETGATE_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,
}

/// Make a token, and print it this once.
#[derive(Debug, Args)]
#[command(after_help = "\
The token goes to stdout and everything else to stderr. Only a hash of it is
kept: whoever loses it needs another. Whoever has it is `token:NAME` to the
gateway, and in its ledger. Two tokens of one name are one caller, so that one
can take the other's place.

Examples:
  (umask 077; fleetgate token create --name ci --role operator --expires 90d > ci.token)
  fleetgate --server https://lab.example:7700 --token-file ci.token devices")]
struct Create {
    /// Whose it is
    #[arg(long)]
    name: String,
    /// What it may do: viewer, operator or admin
    #[arg(long)]
    role: Role,
    /// Only on phones with this label; may be repeated, and all must match
    #[arg(long, value_name = "KEY=VALUE")]
    label: Vec<Label>,
    /// How long it is good, such as 90d; otherwise until it is revoked
    #[arg(long, value_name = "DURATION", value_parser = when::parse_duration)]
    expires: Option<Duration>,
    #[command(flatten)]
    place: Place,
    #[command(flatten)]
    output: ShortOutput,
}

/// List the tokens.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  fleetgate token list -o json")]
struct List {
    #[command(flatten)]
    place: Place,
    #[command(flatten)]
    output: ShortOutput,
}

/// Revoke a token.
#[derive(Debug, Args)]
#[command(after_help = "\
A gateway that runs refuses it from the next second on. One that is revoked stays
as it is.

Example:
  fleetgate token revoke ci")]
struct Revoke {
    /// The token's id, or its name if it alone has that
    token: String,
    #[command(flatten)]
    place: Place,
    #[command(flatten)]
    output: ShortOutput,
}

impl Place {
    fn file(self) -> anyhow::Result<TokenFile> {
        let path = match self.tokens {
            Some(path) => path,
            None => Config::load(self.config.as_deref())?.auth.tokens_path(),
        };
        Ok(TokenFile::at(path))
    }
}

impl Token {
    /// Its `-o`.
    pub(crate) fn output(&self) -> &ShortOutput {
        match &self.verb {
            TokenVerb::Create(create) => &create.output,
            TokenVerb::List(list) => &list.output,
            TokenVerb::Revoke(revoke) => &revoke.output,
        }
    }

    /// Does it.
    pub(crate) fn run(self, format: Format) -> anyhow::Result<()> {
        match self.verb {
            TokenVerb::Create(create) => create.run(format),
            TokenVerb::List(list) => list.run(format),
            TokenVerb::Revoke(revoke) => revoke.run(format),
        }
    }
}

impl Create {
    fn run(self, format: Format) -> anyhow::Result<()> {
        let labels = labels::by_key(self.label)
            .map_err(|key| Misuse(format!("the label {key} is given twice")))?;
        let expires = self.expires.map(|lasts| {
            let expires = SystemTime::now().checked_add(lasts);
            expires.context("longer than a clock can tell")
        });
        let file = self.place.file()?;
        let (info, secret) = file.create(NewToken {
            name: self.name,
            grants: vec![Grant {
                role: self.role,
                labels: labels.into_iter().collect(),
            }],
            expires: expires.transpose()?,
        })?;
        let view = TokenView::new(&info, SystemTime::now());
        match format {
            Format::Table => line(secret.expose())?,
            Format::Json => {
                let made = MadeView::new(&view, secret.expose());
                line(&serde_json::to_string_pretty(&made)?)?;
            }
        }
        note(&format!(
            "{}\nIt is not shown again. Gateways with {} take it.",
            view.text().trim_end(),
            file.path().display()
        ));
        Ok(())
    }
}

impl List {
    fn run(self, format: Format) -> anyhow::Result<()> {
        let now = SystemTime::now();
        let tokens = self.place.file()?.list()?;
        let view = TokensView::new(tokens.iter().map(|info| TokenView::new(info, now)));
        print(format, &view, TokensView::text)
    }
}

impl Revoke {
    fn run(self, format: Format) -> anyhow::Result<()> {
        let info = self.place.file()?.revoke(&self.token)?;
        let view = TokenView::new(&info, SystemTime::now());
        print(format, &view, TokenView::text)
    }
}
