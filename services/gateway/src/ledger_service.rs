//! `LedgerService`: what became of every command.

use fleetgate_proto::v1 as pb;
use fleetgate_proto::v1::ledger_service_server::LedgerService;
use fleetgate_runner::CommandId;
use prost::Message;
use tonic::{Request, Response, Status};

use crate::convert::{Violations, command_query, pending_record, record};
use crate::core::Core;
use crate::deadline::Deadline;
use crate::status;

/// The service over a gateway's core.
#[derive(Debug, Clone)]
pub(crate) struct LedgerApi {
    core: Core,
}

impl LedgerApi {
    pub(crate) fn new(core: Core) -> Self {
        Self { core }
    }

    async fn command(&self, command_id: CommandId) -> Result<pb::CommandRecord, Status> {
        // In this order: a command leaves the notes only after it has a row.
        let note = self.core.pending().get(&command_id);
        let row = self
            .core
            .ledger()
            .command(&command_id)
            .await
            .map_err(|error| status::ledger(&error))?;
        match (row, note) {
            (Some(row), _) => Ok(record(row)),
            (None, Some(note)) => Ok(pending_record(&command_id, note)),
            (None, None) => Err(status::command_unknown(&command_id)),
        }
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
        let command = deadline.bound(self.command(command_id)).await?;
        Ok(Response::new(pb::GetCommandResponse {
            command: Some(command),
        }))
    }

    async fn list_commands(
        &self,
        request: Request<pb::ListCommandsRequest>,
    ) -> Result<Response<pb::ListCommandsResponse>, Status> {
        let deadline = Deadline::of(&request);
        let page = deadline.bound(self.page(request.into_inner())).await?;
        Ok(Response::new(page))
    }
}
