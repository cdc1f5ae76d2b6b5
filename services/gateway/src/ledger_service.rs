//! `LedgerService`: what became of every command, as far as its caller may look
//! at the phones; and what was done besides, by whom.

use std::time::SystemTime;

use fleetgate_identity::Role;
use fleetgate_proto::v1 as pb;
use fleetgate_proto::v1::ledger_service_server::LedgerService;
use fleetgate_runner::CommandId;
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use prost::Message;
use tonic::{Request, Response, Status};

use crate::access::Caller;
use crate::convert::{
    Violations, command_query, fate_change, operation_query, operation_record, pending_record,
    record,
};
use crate::core::Core;
use crate::deadline::Deadline;
use crate::status;
use crate::tail::{Reader, Start, TailConfig, tail};

/// How many pages are looked at for one that is not empty, where its caller may
/// not look at every phone.
const LOOKS: u32 = 16;

/// The service over a gateway's core.
#[derive(Debug, Clone)]
pub(crate) struct LedgerApi {
    core: Core,
}

impl LedgerApi {
    pub(crate) fn new(core: Core) -> Self {
        Self { core }
    }

    async fn command(
        &self,
        command_id: CommandId,
        caller: &Caller,
    ) -> Result<pb::GetCommandResponse, Status> {
        let failed = |error| status::ledger(&error);
        let ledger = self.core.ledger();
        // In this order: a command leaves the notes only after it has a row,
        // and what is pruned is told of before it is gone.
        let note = self.core.pending().get(&command_id);
        let row = ledger.command(&command_id).await.map_err(failed)?;
        let device = row.as_ref().map(|row| &row.device);
        let device = device.or(note.as_ref().map(|note| &note.device)).cloned();
        if let Some(device) = device {
            // Never that it was not sent, which would be wrong.
            let hidden = |_| status::no_record(&command_id);
            let access = self.core.access();
            access
                .check(caller, Role::Viewer, &device)
                .map_err(hidden)?;
        }
        let command = match (row, note) {
            (Some(row), _) => record(row),
            (None, Some(note)) => pending_record(&command_id, &note),
            (None, None) => {
                let pruned = ledger.pruned_through().await.map_err(failed)?;
                return Err(match pruned {
                    Some(pruned) if may_be_pruned(&command_id, pruned) => {
                        status::no_record(&command_id)
                    }
                    Some(_) | None => status::never_sent(&command_id),
                });
            }
        };
        let history = ledger.history(&command_id).await.map_err(failed)?;
        Ok(pb::GetCommandResponse {
            command: Some(command),
            history: history.into_iter().map(fate_change).collect(),
        })
    }

    async fn page(
        &self,
        request: pb::ListCommandsRequest,
        caller: &Caller,
    ) -> Result<pb::ListCommandsResponse, Status> {
        let access = self.core.access();
        let name = request.device.trim().to_owned();
        let mut query =
            command_query(request).map_err(|violations| status::invalid(violations.into()))?;
        if !name.is_empty() {
            let device = self.core.fleet().name(&name);
            let device = device.ok_or_else(|| status::device_unknown(&name, None))?;
            access.check_as(caller, Role::Viewer, &device, &name, None)?;
            query.device = Some(device);
        }
        let mut looks = LOOKS;
        let page = loop {
            let page = self.core.ledger().commands(query.clone()).await;
            let mut page = page.map_err(|error| status::ledger(&error))?;
            page.commands
                .retain(|row| access.may_see(caller, &row.device));
            looks -= 1;
            match &page.next {
                Some(next) if page.commands.is_empty() && looks > 0 => {
                    query.page_token = Some(next.clone());
                }
                Some(_) | None => break page,
            }
        };
        let reply = pb::ListCommandsResponse {
            commands: page.commands.into_iter().map(record).collect(),
            next_page_token: page.next.map(|token| token.to_string()).unwrap_or_default(),
        };
        self.fits(reply)
    }

    /// Whoever may ask at all is told of everybody.
    async fn operations(
        &self,
        request: pb::ListOperationsRequest,
    ) -> Result<pb::ListOperationsResponse, Status> {
        let query =
            operation_query(request).map_err(|violations| status::invalid(violations.into()))?;
        let page = self.core.ledger().operations(query).await;
        let page = page.map_err(|error| status::ledger(&error))?;
        let reply = pb::ListOperationsResponse {
            operations: page.operations.into_iter().map(operation_record).collect(),
            next_page_token: page.next.map(|token| token.to_string()).unwrap_or_default(),
        };
        self.fits(reply)
    }

    /// A page, unless it is larger than a reply may be.
    fn fits<T: Message>(&self, page: T) -> Result<T, Status> {
        let (bytes, limit) = (page.encoded_len(), self.core.max_reply_bytes());
        if bytes > limit {
            Err(status::page_too_large(bytes, limit))
        } else {
            Ok(page)
        }
    }
}

#[tonic::async_trait]
impl LedgerService for LedgerApi {
    async fn get_command(
        &self,
        request: Request<pb::GetCommandRequest>,
    ) -> Result<Response<pb::GetCommandResponse>, Status> {
        let (deadline, caller) = (Deadline::of(&request), Caller::of(&request)?);
        let mut violations = Violations::default();
        let command_id = violations.take("command_id", request.get_ref().command_id.parse());
        let command_id = violations
            .finish(command_id)
            .map_err(|violations| status::invalid(violations.into()))?;
        let reply = deadline.bound(self.command(command_id, &caller)).await?;
        Ok(Response::new(reply))
    }

    async fn list_commands(
        &self,
        request: Request<pb::ListCommandsRequest>,
    ) -> Result<Response<pb::ListCommandsResponse>, Status> {
        let (deadline, caller) = (Deadline::of(&request), Caller::of(&request)?);
        let page = self.page(request.into_inner(), &caller);
        let page = deadline.bound(page).await?;
        Ok(Response::new(page))
    }

    async fn list_operations(
        &self,
        request: Request<pb::ListOperationsRequest>,
    ) -> Result<Response<pb::ListOperationsResponse>, Status> {
        let deadline = Deadline::of(&request);
        let page = self.operations(request.into_inner());
        let page = deadline.bound(page).await?;
        Ok(Response::new(page))
    }

    type TailCommandsStream = BoxStream<'static, Result<pb::TailCommandsResponse, Status>>;

    async fn tail_commands(
        &self,
        request: Request<pb::TailCommandsRequest>,
    ) -> Result<Response<Self::TailCommandsStream>, Status> {
        let (deadline, caller) = (Deadline::of(&request), Caller::of(&request)?);
        let pb::TailCommandsRequest {
            after_cursor,
            from_now,
            until_now,
        } = request.into_inner();
        let mut violations = Violations::default();
        let from = match (after_cursor.as_str(), from_now) {
            ("", false) => Some(Start::Oldest),
            ("", true) => Some(Start::Now),
            (_, true) => violations.refuse("from_now", "must not be set with after_cursor"),
            (cursor, false) => violations
                .take("after_cursor", cursor.parse())
                .map(Start::After),
        };
        let from = violations
            .finish(from)
            .map_err(|violations| status::invalid(violations.into()))?;
        let config = TailConfig {
            from,
            until_now,
            heartbeat: self.core.heartbeat_interval(),
            reader: Reader {
                access: self.core.access().clone(),
                caller,
            },
            deadline,
            stop: self.core.stop().clone(),
        };
        let events = tail(self.core.ledger().clone(), config).await?;
        Ok(Response::new(events.boxed()))
    }
}

/// True unless the id says that it is younger than all that was pruned.
fn may_be_pruned(command_id: &CommandId, pruned_through: SystemTime) -> bool {
    command_id
        .minted()
        .is_none_or(|minted| minted <= pruned_through)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn only_an_id_that_is_younger_than_all_that_was_pruned_proves_anything() {
        let minted = CommandId::mint();
        let now = minted.minted().unwrap();
        let (before, after) = (now - Duration::from_secs(1), now + Duration::from_secs(1));
        assert!(!may_be_pruned(&minted, before));
        assert!(may_be_pruned(&minted, now), "the same millisecond");
        assert!(may_be_pruned(&minted, after));
        let timeless = "order-66".parse().unwrap();
        assert!(may_be_pruned(&timeless, before));
    }
}
