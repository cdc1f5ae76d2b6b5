//! `LedgerService`: what became of every command.

use std::time::SystemTime;

use fleetgate_proto::v1 as pb;
use fleetgate_proto::v1::ledger_service_server::LedgerService;
use fleetgate_runner::CommandId;
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use prost::Message;
use tonic::{Request, Response, Status};

use crate::convert::{Violations, command_query, fate_change, pending_record, record};
use crate::core::Core;
use crate::deadline::Deadline;
use crate::status;
use crate::tail::{Start, TailConfig, tail};

/// The service over a gateway's core.
#[derive(Debug, Clone)]
pub(crate) struct LedgerApi {
    core: Core,
}

impl LedgerApi {
    pub(crate) fn new(core: Core) -> Self {
        Self { core }
    }

    async fn command(&self, command_id: CommandId) -> Result<pb::GetCommandResponse, Status> {
        let failed = |error| status::ledger(&error);
        let ledger = self.core.ledger();
        // In this order: a command leaves the notes only after it has a row,
        // and what is pruned is told of before it is gone.
        let note = self.core.pending().get(&command_id);
        let row = ledger.command(&command_id).await.map_err(failed)?;
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
    ) -> Result<pb::ListCommandsResponse, Status> {
        let name = request.device.trim().to_owned();
        let mut query =
            command_query(request).map_err(|violations| status::invalid(violations.into()))?;
        if !name.is_empty() {
            let device = self.core.fleet().name(&name);
            query.device = Some(device.ok_or_else(|| status::device_unknown(&name, None))?);
        }
        let page = self
            .core
            .ledger()
            .commands(query)
            .await
            .map_err(|error| status::ledger(&error))?;
        let reply = pb::ListCommandsResponse {
            commands: page.commands.into_iter().map(record).collect(),
            next_page_token: page.next.map(|token| token.to_string()).unwrap_or_default(),
        };
        let (bytes, limit) = (reply.encoded_len(), self.core.max_reply_bytes());
        if bytes > limit {
            Err(status::page_too_large(bytes, limit))
        } else {
            Ok(reply)
        }
    }
}

#[tonic::async_trait]
impl LedgerService for LedgerApi {
    async fn get_command(
        &self,
        request: Request<pb::GetCommandRequest>,
    ) -> Result<Response<pb::GetCommandResponse>, Status> {
        let deadline = Deadline::of(&request);
        let mut violations = Violations::default();
        let command_id = violations.take("command_id", request.get_ref().command_id.parse());
        let command_id = violations
            .finish(command_id)
            .map_err(|violations| status::invalid(violations.into()))?;
        let reply = deadline.bound(self.command(command_id)).await?;
        Ok(Response::new(reply))
    }

    async fn list_commands(
        &self,
        request: Request<pb::ListCommandsRequest>,
    ) -> Result<Response<pb::ListCommandsResponse>, Status> {
        let deadline = Deadline::of(&request);
        let page = deadline.bound(self.page(request.into_inner())).await?;
        Ok(Response::new(page))
    }

    type TailCommandsStream = BoxStream<'static, Result<pb::TailCommandsResponse, Status>>;

    async fn tail_commands(
        &self,
        request: Request<pb::TailCommandsRequest>,
    ) -> Result<Response<Self::TailCommandsStream>, Status> {
        let deadline = Deadline::of(&request);
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
