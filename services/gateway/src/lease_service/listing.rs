//! `ListLeases`: a page of leases that its caller may hear of.
//!
//! Leases are read a few at a time, and a page ends where the next one would not
//! fit into the reply, so that neither a reply nor what it takes to make one
//! grows with what others have put into their leases.
//!
//! Invariant: a token goes on with the first lease that was neither told nor left
//! out because it is hidden.

use fleetgate_ledger::{LeaseQuery, PageToken};
use fleetgate_proto::v1 as pb;
use prost::{Message, length_delimiter_len};
use tonic::Status;

use super::LeaseApi;
use crate::access::{Caller, Denial};
use crate::convert::LeaseFilter;
use crate::status;

/// How many leases are read together.
const TOGETHER: usize = 32;

/// How many pages are looked at for one that is not empty, where its caller may
/// not hear of every lease.
const LOOKS: usize = 16;

/// What a token and its field take at most, in bytes.
const TOKEN: usize = 256;

/// The leases of a page, and what they take in a reply.
#[derive(Debug, Default)]
struct Page {
    leases: Vec<pb::Lease>,
    bytes: usize,
}

impl Page {
    /// Adds a lease, if there is room for it within the limit.
    fn add(&mut self, lease: pb::Lease, limit: usize) -> Result<(), usize> {
        let length = lease.encoded_len();
        // Its field, too.
        let bytes = self.bytes + 1 + length_delimiter_len(length) + length;
        if bytes > limit {
            return Err(bytes);
        }
        self.bytes = bytes;
        self.leases.push(lease);
        Ok(())
    }

    /// Takes back what was added since there were so many.
    fn cut(&mut self, (count, bytes): (usize, usize)) {
        self.leases.truncate(count);
        self.bytes = bytes;
    }

    fn mark(&self) -> (usize, usize) {
        (self.leases.len(), self.bytes)
    }
}

impl LeaseApi {
    pub(super) async fn list(
        &self,
        caller: &Caller,
        filter: LeaseFilter,
    ) -> Result<pb::ListLeasesResponse, Status> {
        let size = filter.page_size;
        let mut query = self.query(caller, filter)?;
        let limit = self.core.max_reply_bytes();
        let room = limit.saturating_sub(TOKEN);
        let (mut page, mut read) = (Page::default(), 0);
        let next = loop {
            let wanted = (size - page.leases.len()).min(TOGETHER);
            let next = match self
                .read(caller, &mut query, wanted, &mut page, room)
                .await?
            {
                Ok(next) => next,
                Err(_) if !page.leases.is_empty() => break query.page_token,
                Err(bytes) => return Err(status::page_too_large(bytes, limit)),
            };
            read += wanted;
            let told = page.leases.len();
            let is_enough = told >= size || (told > 0 && read >= size) || read >= LOOKS * size;
            if next.is_none() || is_enough {
                break next;
            }
            query.page_token = next;
        };
        Ok(pb::ListLeasesResponse {
            leases: page.leases,
            next_page_token: next.map(|token| token.to_string()).unwrap_or_default(),
        })
    }

    /// Adds those of the next leases that a caller may hear of, as many as there
    /// is room for, and says where they end. If there is no room for the first of
    /// them, it is how large the page would be.
    async fn read(
        &self,
        caller: &Caller,
        query: &mut LeaseQuery,
        wanted: usize,
        page: &mut Page,
        room: usize,
    ) -> Result<Result<Option<PageToken>, usize>, Status> {
        let before = page.mark();
        let mut wanted = wanted;
        loop {
            query.page_size = u32::try_from(wanted).unwrap_or(u32::MAX);
            let read = self.leases().page(query.clone()).await;
            let (views, next) = read.map_err(|error| status::leases_unread(&error))?;
            let mut full = None;
            for (place, view) in views.iter().enumerate() {
                if !self.may_see(caller, &view.lease) {
                    continue;
                }
                if let Err(bytes) = page.add(self.told(view), room) {
                    full = Some((place, bytes));
                    break;
                }
            }
            match full {
                None => return Ok(Ok(next)),
                Some((0, bytes)) => return Ok(Err(bytes)),
                // Again, so that there is a token for where it has to end.
                Some((place, _)) => wanted = place,
            }
            page.cut(before);
        }
    }

    fn query(&self, caller: &Caller, filter: LeaseFilter) -> Result<LeaseQuery, Status> {
        let LeaseFilter {
            states,
            owner,
            device,
            page_size: _,
            page_token,
        } = filter;
        let device = match device {
            Some(name) => {
                let access = self.core.access();
                let unknown = || status::device_unknown(&name, None);
                let device = self.core.fleet().name(&name).ok_or_else(unknown)?;
                if !access.may_see(caller, &device) {
                    let denial = Denial::of(caller, status::DEVICE_OUT_OF_SCOPE);
                    access.denials().record(denial.device(&device));
                    return Err(unknown());
                }
                Some(device)
            }
            None => None,
        };
        Ok(LeaseQuery {
            states: states.into_iter().map(|state| state.to_string()).collect(),
            owner,
            device,
            page_size: 0,
            page_token,
        })
    }
}
