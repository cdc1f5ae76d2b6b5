//! `AutomationService`: one handler per command, all over [`Core::answer`].
//!
//! A handler may be dropped at any await: it owns nothing but the wait.

use fleetgate_proto::v1 as pb;
use fleetgate_proto::v1::automation_service_server::AutomationService;
use futures_util::stream::{self, Iter};
use tonic::{Request, Response, Status};

use crate::core::Core;
use crate::screenshot::Parts;

/// The service over a gateway's core.
#[derive(Debug, Clone)]
pub(crate) struct Automation {
    core: Core,
}

impl Automation {
    pub(crate) fn new(core: Core) -> Self {
        Self { core }
    }
}

#[tonic::async_trait]
impl AutomationService for Automation {
    async fn get_viewport(
        &self,
        request: Request<pb::GetViewportRequest>,
    ) -> Result<Response<pb::GetViewportResponse>, Status> {
        self.core.answer(request).await
    }

    async fn tap(
        &self,
        request: Request<pb::TapRequest>,
    ) -> Result<Response<pb::TapResponse>, Status> {
        self.core.answer(request).await
    }

    async fn long_press(
        &self,
        request: Request<pb::LongPressRequest>,
    ) -> Result<Response<pb::LongPressResponse>, Status> {
        self.core.answer(request).await
    }

    async fn drag(
        &self,
        request: Request<pb::DragRequest>,
    ) -> Result<Response<pb::DragResponse>, Status> {
        self.core.answer(request).await
    }

    async fn type_text(
        &self,
        request: Request<pb::TypeTextRequest>,
    ) -> Result<Response<pb::TypeTextResponse>, Status> {
        self.core.answer(request).await
    }

    async fn press_keyboard_return(
        &self,
        request: Request<pb::PressKeyboardReturnRequest>,
    ) -> Result<Response<pb::PressKeyboardReturnResponse>, Status> {
        self.core.answer(request).await
    }

    async fn press_keyboard_delete(
        &self,
        request: Request<pb::PressKeyboardDeleteRequest>,
    ) -> Result<Response<pb::PressKeyboardDeleteResponse>, Status> {
        self.core.answer(request).await
    }

    async fn press_button(
        &self,
        request: Request<pb::PressButtonRequest>,
    ) -> Result<Response<pb::PressButtonResponse>, Status> {
        self.core.answer(request).await
    }

    async fn capture_snapshot(
        &self,
        request: Request<pb::CaptureSnapshotRequest>,
    ) -> Result<Response<pb::CaptureSnapshotResponse>, Status> {
        self.core.answer(request).await
    }

    async fn get_runner_status(
        &self,
        request: Request<pb::GetRunnerStatusRequest>,
    ) -> Result<Response<pb::GetRunnerStatusResponse>, Status> {
        self.core.answer(request).await
    }

    async fn get_runner_command_status(
        &self,
        request: Request<pb::GetRunnerCommandStatusRequest>,
    ) -> Result<Response<pb::GetRunnerCommandStatusResponse>, Status> {
        self.core.answer(request).await
    }

    async fn shutdown_runner(
        &self,
        request: Request<pb::ShutdownRunnerRequest>,
    ) -> Result<Response<pb::ShutdownRunnerResponse>, Status> {
        self.core.answer(request).await
    }

    type CaptureScreenshotStream = Iter<Parts>;

    async fn capture_screenshot(
        &self,
        request: Request<pb::CaptureScreenshotRequest>,
    ) -> Result<Response<Self::CaptureScreenshotStream>, Status> {
        let parts = self.core.screenshot(request).await?;
        Ok(Response::new(stream::iter(parts)))
    }
}
