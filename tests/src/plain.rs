//! One plain request of every kind, for tests in which the request itself does
//! not matter.

use fleetgate_proto::v1 as pb;
use fleetgate_proto::v1::automation_service_client::AutomationServiceClient;
use fleetgate_proto::v1::capture_screenshot_response::Part;
use fleetgate_runner::CommandKind;
use tonic::Status;
use tonic::client::GrpcService;
use tonic::codegen::{Body, Bytes, StdError};

use crate::{A_CALL, APP, Rig, within};

/// What [`send`] types.
pub const TEXT: &str = "plain text";

/// Every command that goes through a runner's queue.
pub fn queued() -> impl Iterator<Item = CommandKind> {
    CommandKind::ALL
        .into_iter()
        .filter(|kind| !kind.bypasses_queue())
}

/// The commands that name an app.
pub const IN_AN_APP: [CommandKind; 8] = [
    CommandKind::Viewport,
    CommandKind::Tap,
    CommandKind::LongPress,
    CommandKind::Drag,
    CommandKind::Type,
    CommandKind::KeyboardReturn,
    CommandKind::KeyboardDelete,
    CommandKind::Snapshot,
];

/// A place in the app's own points.
pub fn absolute(x: f64, y: f64) -> Option<pb::Point> {
    Some(pb::Point {
        place: Some(pb::point::Place::Absolute(pb::AbsolutePoint { x, y })),
    })
}

/// A place as fractions of the viewport.
pub fn normalized(x: f64, y: f64) -> Option<pb::Point> {
    Some(pb::Point {
        place: Some(pb::point::Place::Normalized(pb::NormalizedPoint { x, y })),
    })
}

/// The kind as the API names it.
pub fn kind(kind: CommandKind) -> pb::CommandKind {
    let name: String = kind.as_str().chars().fold(String::new(), |name, letter| {
        let dash = if letter.is_ascii_uppercase() { "_" } else { "" };
        name + dash + &letter.to_ascii_uppercase().to_string()
    });
    pb::CommandKind::from_str_name(&format!("COMMAND_KIND_{name}")).expect("a kind of the API")
}

/// The fields that the requests share. The two kinds of status have no id of
/// their own, and no lease; what names no app has no use for one.
#[derive(Debug, Clone, PartialEq)]
pub struct Head {
    /// The phone, as the caller spells it.
    pub device: String,
    /// The command's id.
    pub command_id: Option<String>,
    /// The lease.
    pub lease: Option<pb::LeaseRef>,
    /// The app.
    pub app_bundle_id: String,
}

/// Sends a plain command of this kind and gives its receipt.
pub async fn send(
    rig: &Rig,
    device: &str,
    kind: CommandKind,
    command_id: &str,
) -> Result<pb::CommandReceipt, Status> {
    let head = Head {
        device: device.to_owned(),
        command_id: Some(command_id.to_owned()),
        lease: None,
        app_bundle_id: APP.to_owned(),
    };
    send_as(rig, kind, head).await
}

/// The same with a say in what the requests share.
pub async fn send_as(
    rig: &Rig,
    kind: CommandKind,
    head: Head,
) -> Result<pb::CommandReceipt, Status> {
    send_over(rig.automation(), kind, head).await
}

/// The same over a client that need not be the rig's.
pub async fn send_over<T>(
    client: AutomationServiceClient<T>,
    kind: CommandKind,
    head: Head,
) -> Result<pb::CommandReceipt, Status>
where
    T: GrpcService<tonic::body::Body>,
    T::Error: Into<StdError>,
    T::ResponseBody: Body<Data = Bytes> + Send + 'static,
    <T::ResponseBody as Body>::Error: Into<StdError> + Send,
{
    let what = format!("the answer to {kind} {:?}", head.command_id);
    within(A_CALL, &what, call(client, kind, head)).await
}

#[expect(clippy::too_many_lines, reason = "one arm for each command")]
async fn call<T>(
    mut client: AutomationServiceClient<T>,
    kind: CommandKind,
    head: Head,
) -> Result<pb::CommandReceipt, Status>
where
    T: GrpcService<tonic::body::Body>,
    T::Error: Into<StdError>,
    T::ResponseBody: Body<Data = Bytes> + Send + 'static,
    <T::ResponseBody as Body>::Error: Into<StdError> + Send,
{
    let Head {
        device,
        command_id,
        lease,
        app_bundle_id,
    } = head;
    let receipt = match kind {
        CommandKind::Viewport => {
            let request = pb::GetViewportRequest {
                device,
                command_id,
                lease,
                app_bundle_id,
            };
            client.get_viewport(request).await?.into_inner().receipt
        }
        CommandKind::Tap => {
            let (point, number_of_taps) = (absolute(20.0, 30.0), None);
            let request = pb::TapRequest {
                device,
                command_id,
                lease,
                app_bundle_id,
                point,
                number_of_taps,
            };
            client.tap(request).await?.into_inner().receipt
        }
        CommandKind::LongPress => {
            let (point, duration) = (absolute(20.0, 30.0), None);
            let request = pb::LongPressRequest {
                device,
                command_id,
                lease,
                app_bundle_id,
                point,
                duration,
            };
            client.long_press(request).await?.into_inner().receipt
        }
        CommandKind::Drag => {
            let request = pb::DragRequest {
                device,
                command_id,
                lease,
                app_bundle_id,
                from: absolute(200.0, 400.0),
                to: absolute(200.0, 300.0),
                duration: None,
                hold: None,
                settle: true,
            };
            client.drag(request).await?.into_inner().receipt
        }
        CommandKind::Type => {
            let text = TEXT.to_owned();
            let request = pb::TypeTextRequest {
                device,
                command_id,
                lease,
                app_bundle_id,
                text,
            };
            client.type_text(request).await?.into_inner().receipt
        }
        CommandKind::KeyboardReturn => {
            let request = pb::PressKeyboardReturnRequest {
                device,
                command_id,
                lease,
                app_bundle_id,
            };
            client
                .press_keyboard_return(request)
                .await?
                .into_inner()
                .receipt
        }
        CommandKind::KeyboardDelete => {
            let request = pb::PressKeyboardDeleteRequest {
                device,
                command_id,
                lease,
                app_bundle_id,
            };
            client
                .press_keyboard_delete(request)
                .await?
                .into_inner()
                .receipt
        }
        CommandKind::Snapshot => {
            let request = pb::CaptureSnapshotRequest {
                device,
                command_id,
                lease,
                app_bundle_id,
            };
            client.capture_snapshot(request).await?.into_inner().receipt
        }
        CommandKind::Button => {
            let button = pb::Button::VolumeUp.into();
            let request = pb::PressButtonRequest {
                device,
                command_id,
                lease,
                button,
            };
            client.press_button(request).await?.into_inner().receipt
        }
        CommandKind::Screenshot => {
            let request = pb::CaptureScreenshotRequest {
                device,
                command_id,
                lease,
            };
            let mut parts = client.capture_screenshot(request).await?.into_inner();
            let first = parts.message().await?.and_then(|first| first.part);
            while parts.message().await?.is_some() {}
            match first {
                Some(Part::Header(header)) => header.receipt,
                Some(Part::Chunk(_)) | None => panic!("a screenshot begins with its header"),
            }
        }
        CommandKind::Status => {
            let request = pb::GetRunnerStatusRequest { device };
            client
                .get_runner_status(request)
                .await?
                .into_inner()
                .receipt
        }
        CommandKind::CommandStatus => {
            let command_id = command_id.unwrap_or_default();
            let request = pb::GetRunnerCommandStatusRequest { device, command_id };
            client
                .get_runner_command_status(request)
                .await?
                .into_inner()
                .receipt
        }
        CommandKind::Shutdown => {
            let request = pb::ShutdownRunnerRequest {
                device,
                command_id,
                lease,
            };
            client.shutdown_runner(request).await?.into_inner().receipt
        }
    };
    Ok(receipt.expect("every reply has a receipt"))
}
