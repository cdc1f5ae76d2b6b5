//! The ledger read again from its beginning: who had which phone, and who sent
//! what there.
//!
//! The promise is written down here once more, apart from the code that keeps
//! it. In the order of the records:
//!
//! - a phone is granted to one lease at a time, and each grant has a higher
//!   epoch than all before it;
//! - what is sent to a phone that a lease has is sent by its owner, under it and
//!   its epoch; under no lease only while no lease has the phone;
//! - what was sent has its fate before the phone is granted again.

use std::collections::BTreeMap;

use fleetgate_proto::v1::ledger_event::Entry;
use fleetgate_proto::v1::{CommandRecord, LeaseRef};
use serde_json::Value;

use super::Done;

/// What the ledger says, so far.
#[derive(Debug, Default)]
pub struct Referee {
    /// Who has the phone.
    holders: BTreeMap<String, Grant>,
    /// Every lease that was asked for, and whose it is.
    owners: BTreeMap<String, String>,
    /// The highest epoch.
    epoch: u64,
    /// The commands that are under way, and where.
    under_way: BTreeMap<String, String>,
    /// Every grant there was.
    pub grants: Vec<Grant>,
    /// How many commands were sent under a lease.
    pub leased: usize,
    /// How many were sent under none.
    pub unleased: usize,
    /// What was wrong.
    pub violations: Vec<String>,
    /// Grants of phones on which something had no fate. The next gateway after
    /// one that died keeps the commands of the new holder back instead.
    pub overlaps: Vec<String>,
}

/// One grant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    /// The lease.
    pub lease: String,
    /// Its number.
    pub epoch: u64,
    /// The phones.
    pub devices: Vec<String>,
}

impl Referee {
    /// Reads entries from the first on.
    pub fn read(entries: Vec<Entry>) -> Self {
        let mut referee = Self::default();
        for entry in entries {
            referee.take(entry);
        }
        referee
    }

    fn take(&mut self, entry: Entry) {
        match entry {
            Entry::Intended(command) => self.intended(command),
            Entry::Concluded(command) => {
                self.under_way.remove(&command.command_id);
            }
            Entry::Operation(operation) => self.operation(operation.into()),
            Entry::Resolved(_) | Entry::Transition(_) => {}
        }
    }

    fn operation(&mut self, done: Done) {
        let Done {
            who,
            what,
            target: lease,
            detail,
        } = done;
        match what.as_str() {
            "create-lease" => self.made(&lease, who),
            "grant-lease" => self.granted(lease, &detail),
            "end-lease" => self.holders.retain(|_, grant| grant.lease != lease),
            _other => {}
        }
    }

    fn made(&mut self, lease: &str, who: String) {
        if self.owners.insert(lease.to_owned(), who).is_some() {
            self.complain(format!("{lease} was made twice"));
        }
    }

    fn granted(&mut self, lease: String, detail: &Value) {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a count that the API tells as a floating-point number"
        )]
        let epoch = detail["epoch"].as_f64().expect("an epoch") as u64;
        let devices = detail["devices"].as_array().expect("phones").iter();
        let devices = devices.map(|device| device.as_str().expect("a UDID").to_owned());
        let grant = Grant {
            lease,
            epoch,
            devices: devices.collect(),
        };
        if epoch <= self.epoch {
            self.complain(format!("{grant:?} comes after epoch {}", self.epoch));
        }
        self.epoch = epoch;
        if !self.owners.contains_key(&grant.lease) {
            self.complain(format!("{grant:?} is one of a lease that nobody asked for"));
        }
        for device in &grant.devices {
            if let Some(holder) = self.holders.insert(device.clone(), grant.clone()) {
                self.complain(format!("{device} is {grant:?} and {holder:?}"));
            }
            let busy = self.under_way.iter().find(|(_, at)| *at == device);
            if let Some((command, _)) = busy {
                let overlap = format!("{grant:?} comes while {command} is under way");
                self.overlaps.push(overlap);
            }
        }
        self.grants.push(grant);
    }

    fn intended(&mut self, command: CommandRecord) {
        let CommandRecord {
            command_id,
            device,
            principal,
            lease,
            ..
        } = command;
        self.under_way.insert(command_id.clone(), device.clone());
        let holder = self.holders.get(&device);
        let held = holder.map(|grant| LeaseRef {
            id: grant.lease.clone(),
            epoch: grant.epoch,
        });
        let owner = holder.and_then(|grant| self.owners.get(&grant.lease));
        let is_owners = owner.is_none_or(|owner| Some(owner) == principal.as_ref());
        if lease.is_some() {
            self.leased += 1;
        } else {
            self.unleased += 1;
        }
        if held != lease || !is_owners {
            self.complain(format!(
                "{command_id} of {principal:?} was sent under {lease:?} while {owner:?} had \
                 {device} by {held:?}"
            ));
        }
    }

    fn complain(&mut self, wrong: String) {
        self.violations.push(wrong);
    }
}

#[cfg(test)]
mod tests;
