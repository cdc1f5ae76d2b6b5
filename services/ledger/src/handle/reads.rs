//! What the handle reads. Reads have connections of their own and never wait for
//! the writer.

use std::time::SystemTime;

use fleetgate_runner::{CommandId, Udid};

use super::Ledger;
use crate::error::{LedgerError, classify};
use crate::history;
use crate::leases::{self, LeaseClock, LeasePage, LeaseQuery, LeaseRow};
use crate::operations::{self, OperationPage, OperationQuery};
use crate::query::{self, CommandPage, CommandQuery, ReadError};
use crate::row::{CommandRow, Conclusion};
use crate::settings::{self, DeviceSettings};
use crate::tail::{self, Cursor, TailPage};
use crate::token::PageToken;
use crate::transitions::{self, TransitionPage};

impl Ledger {
    /// The settings of every phone that was ever given any, by UDID.
    pub async fn device_settings(&self) -> Result<Vec<DeviceSettings>, LedgerError> {
        settings::all(&self.shared.readers)
            .await
            .map_err(|error| self.read_failed(error))
    }

    /// One page of what a phone went through, the newest first. `page_size` 0
    /// means 100, more than 1000 means 1000.
    pub async fn transitions(
        &self,
        device: &Udid,
        page_size: u32,
        token: Option<PageToken>,
    ) -> Result<TransitionPage, LedgerError> {
        transitions::transitions(&self.shared.readers, device, page_size, token)
            .await
            .map_err(|error| self.read_failed(error))
    }

    /// The command of this id.
    pub async fn command(&self, id: &CommandId) -> Result<Option<CommandRow>, LedgerError> {
        query::command(&self.shared.readers, id)
            .await
            .map_err(|error| self.read_failed(error))
    }

    /// One page of commands, the newest first.
    pub async fn commands(&self, query: CommandQuery) -> Result<CommandPage, LedgerError> {
        query::commands(&self.shared.readers, query)
            .await
            .map_err(|error| self.read_failed(error))
    }

    /// Every word on the command of this id, the first one first; nothing if it
    /// is not on record or has no fate.
    pub async fn history(&self, id: &CommandId) -> Result<Vec<Conclusion>, LedgerError> {
        history::history(&self.shared.readers, id)
            .await
            .map_err(|error| self.read_failed(error))
    }

    /// Mutations that have no fate yet, or an UNKNOWN that is not for good, the
    /// oldest first; of one device or of all, recorded at or after `since`.
    /// Costs what the unsettled ones cost, and a look at the newest commands; one
    /// call for all devices costs as much as one for each.
    pub async fn unsettled(
        &self,
        device: Option<&Udid>,
        since: Option<SystemTime>,
    ) -> Result<Vec<CommandRow>, LedgerError> {
        history::unsettled(&self.shared.readers, device, since)
            .await
            .map_err(|error| self.read_failed(error))
    }

    /// The youngest time, of rows or of ids, of all commands that were ever
    /// removed; `None` if none was. A younger id that is not on record never
    /// was, if this is asked after [`Ledger::command`] has found nothing.
    pub async fn pruned_through(&self) -> Result<Option<SystemTime>, LedgerError> {
        history::pruned_through(&self.shared.readers)
            .await
            .map_err(|error| self.read_failed(error))
    }

    /// One page of events, the oldest first, after a cursor or from the oldest
    /// that is left. `page_size` 0 means 100, more than 500 means 500.
    /// [`LedgerError::CursorGap`] if events after the cursor were removed.
    pub async fn tail(
        &self,
        after: Option<Cursor>,
        page_size: u32,
    ) -> Result<TailPage, LedgerError> {
        tail::tail(&self.shared.readers, after, page_size)
            .await
            .map_err(|error| self.read_failed(error))
    }

    /// Where to begin to follow what happens from now on.
    pub async fn now(&self) -> Result<Option<Cursor>, LedgerError> {
        tail::head(&self.shared.readers)
            .await
            .map_err(|error| self.read_failed(error))
    }

    /// The leases that have still something before them, the oldest first.
    pub async fn open_leases(&self) -> Result<Vec<LeaseRow>, LedgerError> {
        leases::open(&self.shared.readers)
            .await
            .map_err(|error| self.read_failed(error))
    }

    /// The lease of this id.
    pub async fn lease(&self, id: &str) -> Result<Option<LeaseRow>, LedgerError> {
        leases::lease(&self.shared.readers, id)
            .await
            .map_err(|error| self.read_failed(error))
    }

    /// The lease that this request of its owner made.
    pub async fn lease_by_request(
        &self,
        owner: &str,
        request_id: &str,
    ) -> Result<Option<LeaseRow>, LedgerError> {
        leases::by_request(&self.shared.readers, owner, request_id)
            .await
            .map_err(|error| self.read_failed(error))
    }

    /// One page of leases, the newest first.
    pub async fn leases(&self, query: LeaseQuery) -> Result<LeasePage, LedgerError> {
        leases::leases(&self.shared.readers, query)
            .await
            .map_err(|error| self.read_failed(error))
    }

    /// Where the time and the numbers of leases go on.
    pub async fn lease_clock(&self) -> Result<LeaseClock, LedgerError> {
        leases::clock(&self.shared.readers)
            .await
            .map_err(|error| self.read_failed(error))
    }

    /// One page of what was done other than by commands, the newest first.
    pub async fn operations(&self, query: OperationQuery) -> Result<OperationPage, LedgerError> {
        operations::operations(&self.shared.readers, query)
            .await
            .map_err(|error| self.read_failed(error))
    }

    fn read_failed(&self, error: ReadError) -> LedgerError {
        match error {
            ReadError::Database(error) => classify(&self.shared.path, self.shared.patience, error),
            ReadError::Refused(error) => error,
        }
    }
}
