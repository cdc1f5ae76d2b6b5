//! `type`: text into the focused input of an app.
//!
//! What is typed is often a secret: it can come from stdin, is never printed,
//! and formatting the arguments does not show it.

use std::fmt;
use std::io::{self, Read};

use anyhow::Context as _;
use clap::Args;
use fleetgate_proto::v1::{TypeTextRequest, TypeTextResponse};

use crate::args::{CommandId, ShortOutput, UnderLease};
use crate::client::{Asked, Client, Context, mint};
use crate::exit::Misuse;
use crate::output::print;
use crate::rejected::Rejected;
use crate::view::receipt::DoneView;

/// Type text into the focused input of an app.
#[derive(Debug, Args)]
#[command(
    override_usage = "fleetgate type [OPTIONS] --app <BUNDLE_ID> [DEVICE] <TEXT>",
    after_help = "Examples:\n  \
    fleetgate type anna --app com.example.shop 'two socks'\n  \
    fleetgate type anna --app com.example.shop - < password.txt"
)]
pub(crate) struct TypeText {
    /// UDID or alias; not needed where `FLEETGATE_DEVICE` names the phone
    // What stands alone is the text: hence a type that is not shown.
    #[arg(value_name = "DEVICE", value_parser = source)]
    first: Source,
    /// The text, or - for stdin, which keeps it out of the shell's history and
    /// the list of processes; one line break at its end is dropped
    #[arg(value_name = "TEXT", value_parser = source)]
    second: Option<Source>,
    /// The app's bundle id
    #[arg(long, value_name = "BUNDLE_ID")]
    app: String,
    #[command(flatten)]
    lease: UnderLease,
    #[command(flatten)]
    command_id: CommandId,
    #[command(flatten)]
    pub(crate) output: ShortOutput,
}

/// Where the text comes from.
#[derive(Clone, PartialEq, Eq)]
enum Source {
    Argument(String),
    Stdin,
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Argument(text) => write!(f, "Argument({} chars)", text.chars().count()),
            Self::Stdin => f.write_str("Stdin"),
        }
    }
}

impl TypeText {
    /// Types it.
    pub(crate) async fn run(self, context: &Context) -> anyhow::Result<()> {
        let (device, text) = told_apart(self.first, self.second)?;
        let text = match text {
            Source::Argument(text) => text,
            Source::Stdin => {
                let mut text = String::new();
                io::stdin()
                    .lock()
                    .read_to_string(&mut text)
                    .context("cannot read the text from stdin")?;
                trimmed(text)
            }
        };
        if text.is_empty() {
            return Err(Misuse("there is no text to type".to_owned()).into());
        }
        let client = Client::connect(context).await?;
        let request = TypeTextRequest {
            device,
            command_id: Some(self.command_id.or_new()),
            lease: self.lease.named(),
            app_bundle_id: self.app,
            text,
        };
        let reply = ask(&client, request).await?;
        print(
            context.format,
            &DoneView::new(reply.receipt, reply.message),
            DoneView::text,
        )
    }
}

/// Has text typed.
pub(crate) async fn send(
    client: &Client,
    device: &str,
    app: &str,
    text: String,
) -> Result<TypeTextResponse, Rejected> {
    let request = TypeTextRequest {
        device: device.to_owned(),
        command_id: Some(mint()),
        lease: None,
        app_bundle_id: app.to_owned(),
        text,
    };
    ask(client, request).await
}

async fn ask(client: &Client, request: TypeTextRequest) -> Result<TypeTextResponse, Rejected> {
    let id = request.command_id.clone().unwrap_or_default();
    let reply = client.automation().type_text(client.request(request)).await;
    Ok(reply
        .map_err(|status| client.rejected(&status, Asked::mutation(&id)))?
        .into_inner())
}

/// The phone and the text: what stands alone is the text.
fn told_apart(first: Source, second: Option<Source>) -> Result<(String, Source), Misuse> {
    let named = match (first, second) {
        (Source::Argument(device), Some(text)) => Some((device, text)),
        (Source::Stdin, Some(_)) => None,
        (text, None) => {
            let device = std::env::var("FLEETGATE_DEVICE").ok();
            device
                .filter(|device| !device.is_empty())
                .map(|device| (device, text))
        }
    };
    named.ok_or_else(|| Misuse("which phone, and which text? `type DEVICE TEXT`".to_owned()))
}

#[expect(clippy::unnecessary_wraps, reason = "clap's value parsers may fail")]
fn source(text: &str) -> Result<Source, String> {
    Ok(if text == "-" {
        Source::Stdin
    } else {
        Source::Argument(text.to_owned())
    })
}

/// Without the line break that editors and `echo` put at the end.
fn trimmed(mut text: String) -> String {
    if text.ends_with('\n') {
        text.pop();
        if text.ends_with('\r') {
            text.pop();
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_break_at_the_end_of_stdin_is_not_typed() {
        assert_eq!(trimmed("secret\n".to_owned()), "secret");
        assert_eq!(trimmed("secret\r\n".to_owned()), "secret");
        assert_eq!(trimmed("two\nlines\n\n".to_owned()), "two\nlines\n");
        assert_eq!(trimmed("secret".to_owned()), "secret");
    }

    #[test]
    fn formatting_the_arguments_does_not_show_the_text() {
        let source = source("hunter2").unwrap();
        assert_eq!(format!("{source:?}"), "Argument(7 chars)");
    }

    #[test]
    fn the_phone_stands_before_the_text() {
        let (device, text) = told_apart(source("anna").unwrap(), source("-").ok()).unwrap();
        assert_eq!((device.as_str(), text), ("anna", Source::Stdin));
        assert!(told_apart(Source::Stdin, source("anna").ok()).is_err());
    }

    #[test]
    fn a_dash_stands_for_stdin() {
        assert_eq!(source("-"), Ok(Source::Stdin));
        assert_eq!(source("--"), Ok(Source::Argument("--".to_owned())));
    }
}
