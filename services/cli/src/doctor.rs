//! `doctor`: what is wrong with a fleet, and what to do about it.
//!
//! It asks the gateway; if there is none, it looks at what a gateway would need
//! on this host. What follows from the answers is decided in [`findings()`],
//! without I/O.

use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use clap::Args;
use fleetgate_gateway::Config;

use crate::args::ShortOutput;
use crate::client::{Asked, Client, Context};
use crate::exit::{Exit, Unwell};
use crate::output::print;
use crate::rejected::Rejected;
use crate::verbs::devices;

mod credentials;
mod evidence;
mod findings;
mod probes;
mod view;

use evidence::{Answers, Evidence, NoGateway};
use findings::findings;
use view::DoctorView;

/// How long the gateway may take to answer, unless that is said: one that hangs
/// is a finding.
const PATIENCE: Duration = Duration::from_secs(10);

/// Say what is wrong, and what to do about it.
#[derive(Debug, Args)]
#[command(after_help = "\
It asks the gateway about itself and its phones. If there is none, it looks on
this host whether the configuration can be read, every usbmuxd of it answers,
and the ledger can be written. Of a gateway of this host it looks at the tokens
and the certificate, too. It changes nothing.

Ends with 0 if there is no error (warnings and notes are none), and with 7 if
there is one.

Examples:
  fleetgate doctor
  fleetgate doctor -o json | jq '.findings[] | select(.severity == \"error\")'")]
pub(crate) struct Doctor {
    /// The configuration to look at if there is no gateway
    #[arg(long, env = "FLEETGATE_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) output: ShortOutput,
}

impl Doctor {
    /// Examines.
    pub(crate) async fn run(self, context: &Context) -> anyhow::Result<()> {
        let patient = Context {
            timeout: context.timeout.or(Some(PATIENCE)),
            ..context.clone()
        };
        let evidence = self.gather(&patient).await;
        let view = DoctorView::new(&evidence, findings(&evidence));
        print(context.format, &view, DoctorView::text)?;
        match view.errors() {
            0 => Ok(()),
            errors => Err(Unwell(errors).into()),
        }
    }

    async fn gather(&self, context: &Context) -> Evidence {
        let server = context.server.to_string();
        let gateway = match Client::connect(context).await {
            Ok(client) => ask(&client).await.map_err(|rejected| odd(&rejected)),
            Err(rejected) => Err(NoGateway::Unreachable {
                why: rejected.to_string(),
                advice: rejected.hint().unwrap_or("see what is there").to_owned(),
            }),
        };
        let now = SystemTime::now();
        let config = Config::load(self.config.as_deref()).ok();
        let credentials = config
            .filter(|_| context.server.is_loopback() || gateway.is_err())
            .map(|config| credentials::look(&config, now));
        // One that lets nobody in is there: what one would need is no question.
        let is_closed = matches!(gateway, Err(NoGateway::Closed { .. }));
        match gateway {
            Ok(answers) => {
                let here = context.server.is_loopback();
                let ledger = answers.gateway.ledger.as_ref().filter(|_| here);
                let space = ledger.and_then(|ledger| probes::space(ledger.path.as_ref()));
                Evidence {
                    server,
                    now,
                    gateway: Ok(answers),
                    space,
                    credentials,
                    local: None,
                }
            }
            Err(none) => Evidence {
                server,
                now,
                gateway: Err(none),
                space: None,
                credentials,
                local: if is_closed {
                    None
                } else {
                    Some(probes::look(self.config.as_deref()).await)
                },
            },
        }
    }
}

/// What an answer means that is none.
fn odd(rejected: &Rejected) -> NoGateway {
    if rejected.exit() != Exit::Denied {
        return NoGateway::Odd(rejected.to_string());
    }
    NoGateway::Closed {
        why: rejected.to_string(),
        advice: rejected.hint().unwrap_or("see who may call it").to_owned(),
    }
}

async fn ask(client: &Client) -> Result<Answers, Rejected> {
    let request = client.request(fleetgate_proto::v1::GetGatewayRequest {});
    let gateway = client.fleet().get_gateway(request).await;
    let gateway = gateway
        .map_err(|status| client.rejected(&status, Asked::nothing()))?
        .into_inner();
    Ok(Answers {
        gateway,
        devices: devices::list(client).await?,
    })
}
