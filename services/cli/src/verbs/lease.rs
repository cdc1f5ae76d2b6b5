//! `lease`: phones for one driver at a time; and `lease run`, which has one for
//! as long as a command runs.

use clap::{Args, Subcommand};
use fleetgate_proto::v1 as pb;

use crate::args::ShortOutput;
use crate::client::{Asked, Client, Context};
use crate::exit::Exit;
use crate::output::print;
use crate::rejected::Rejected;
use crate::view::lease::{LeaseView, text};

mod acquire;
mod create;
mod explain;
mod ls;
mod progress;
mod release;
mod renew;
mod run;
mod show;
mod wish;

/// Have phones to oneself.
#[derive(Debug, Args)]
pub(crate) struct Lease {
    #[command(subcommand)]
    verb: LeaseVerb,
}

#[derive(Debug, Subcommand)]
enum LeaseVerb {
    /// Ask for phones
    Create(create::Create),
    /// List leases, the newest first
    #[command(visible_alias = "list")]
    Ls(ls::Ls),
    /// Show one lease
    Show(show::Show),
    /// Show one lease, and every change of it until it has ended
    Watch(show::Watch),
    /// Keep a lease for another ttl
    Renew(renew::Renew),
    /// Give a lease back
    Release(release::Release),
    /// Take somebody's lease away
    Revoke(release::Revoke),
    /// Say why a lease waits
    Explain(explain::Explain),
    /// Run a command that has phones to itself
    Run(run::Run),
}

impl Lease {
    /// Its `-o`.
    pub(crate) fn output(&self) -> Option<&ShortOutput> {
        match &self.verb {
            LeaseVerb::Create(create) => Some(&create.output),
            LeaseVerb::Ls(ls) => Some(&ls.output),
            LeaseVerb::Show(show) => Some(&show.output),
            LeaseVerb::Watch(watch) => Some(&watch.output),
            LeaseVerb::Renew(renew) => Some(&renew.output),
            LeaseVerb::Release(release) => Some(&release.output),
            LeaseVerb::Revoke(revoke) => Some(&revoke.output),
            LeaseVerb::Explain(explain) => Some(&explain.output),
            LeaseVerb::Run(_) => None,
        }
    }

    /// Does it.
    pub(crate) async fn run(self, context: &Context) -> anyhow::Result<Exit> {
        match self.verb {
            LeaseVerb::Create(create) => create.run(context).await,
            LeaseVerb::Ls(ls) => done(ls.run(context).await),
            LeaseVerb::Show(show) => done(show.run(context).await),
            LeaseVerb::Watch(watch) => done(watch.run(context).await),
            LeaseVerb::Renew(renew) => done(renew.run(context).await),
            LeaseVerb::Release(release) => done(release.run(context).await),
            LeaseVerb::Revoke(revoke) => done(revoke.run(context).await),
            LeaseVerb::Explain(explain) => done(explain.run(context).await),
            LeaseVerb::Run(run) => run.run(context).await,
        }
    }
}

fn done(result: anyhow::Result<()>) -> anyhow::Result<Exit> {
    result.map(|()| Exit::Done)
}

/// Prints a lease that a call answered with.
fn show_one(context: &Context, lease: pb::Lease) -> anyhow::Result<()> {
    let text = text(&lease);
    print(context.format, &LeaseView::from(lease), |_| text)
}

/// One lease.
async fn get(client: &Client, id: &str) -> Result<pb::Lease, Rejected> {
    let request = pb::GetLeaseRequest {
        lease_id: id.to_owned(),
    };
    let reply = client.leases().get_lease(client.request(request)).await;
    let reply = reply.map_err(|status| client.rejected(&status, Asked::nothing()))?;
    Ok(reply.into_inner().lease.unwrap_or_default())
}

/// A lease, for another ttl.
async fn renew(client: &Client, id: &str, epoch: u64) -> Result<pb::Lease, Rejected> {
    let request = pb::RenewLeaseRequest {
        lease_id: id.to_owned(),
        epoch,
    };
    let reply = client.leases().renew_lease(client.request(request)).await;
    let reply = reply.map_err(|status| client.rejected(&status, Asked::nothing()))?;
    Ok(reply.into_inner().lease.unwrap_or_default())
}

/// A lease that is given back. Again is the same as once.
async fn release(client: &Client, id: &str) -> Result<pb::Lease, Rejected> {
    let request = pb::ReleaseLeaseRequest {
        lease_id: id.to_owned(),
    };
    let reply = client.leases().release_lease(client.request(request)).await;
    let reply = reply.map_err(|status| client.rejected(&status, Asked::nothing()))?;
    Ok(reply.into_inner().lease.unwrap_or_default())
}

/// Why a lease waits.
async fn explain(client: &Client, id: &str) -> Result<pb::ExplainLeaseResponse, Rejected> {
    let request = pb::ExplainLeaseRequest {
        lease_id: id.to_owned(),
    };
    let reply = client.leases().explain_lease(client.request(request)).await;
    let reply = reply.map_err(|status| client.rejected(&status, Asked::nothing()))?;
    Ok(reply.into_inner())
}
