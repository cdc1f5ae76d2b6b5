//! Every call that names a phone.

use fleetgate_proto::v1 as pb;
use tonic::Status;

use crate::guarded::Clients;
use crate::support::tap;

/// A request with something set.
pub(super) fn with<T: Default>(set: impl FnOnce(&mut T)) -> T {
    let mut request = T::default();
    set(&mut request);
    request
}

/// Makes a call for a phone, and notes what it was answered.
macro_rules! ask {
    ($answers:ident, $client:expr, $name:expr, $method:ident, $request:ident $(, $field:ident = $value:expr)*) => {
        let answer = $client
            .$method(with(|request: &mut pb::$request| {
                $name.clone_into(&mut request.device);
                $(request.$field = $value;)*
            }))
            .await;
        let status = answer.map_or_else(|status| status, |_| Status::ok(""));
        $answers.push((stringify!($request).trim_end_matches("Request"), status));
    };
}

/// All of them about a phone that is called so, by the names of their methods.
pub(super) async fn about(clients: &mut Clients, name: &str, id: &str) -> Answers {
    let mut answers = Vec::new();
    let (fleet, ledger) = (&mut clients.fleet, &mut clients.ledger);
    let labels = [("note".to_owned(), id.to_owned())];
    let why = || "a look".to_owned();
    ask!(answers, fleet, name, get_device, GetDeviceRequest);
    ask!(
        answers,
        fleet,
        name,
        list_device_transitions,
        ListDeviceTransitionsRequest
    );
    ask!(
        answers,
        fleet,
        name,
        update_device,
        UpdateDeviceRequest,
        set_labels = labels.into()
    );
    ask!(
        answers,
        fleet,
        name,
        cordon_device,
        CordonDeviceRequest,
        reason = why()
    );
    ask!(answers, fleet, name, uncordon_device, UncordonDeviceRequest);
    ask!(answers, fleet, name, recycle_runner, RecycleRunnerRequest);
    ask!(answers, ledger, name, list_commands, ListCommandsRequest);
    touches(clients, name, id, &mut answers).await;
    others(clients, name, &mut answers).await;
    answers
}

type Answers = Vec<(&'static str, Status)>;

fn app() -> String {
    "com.example.app".to_owned()
}

async fn touches(clients: &mut Clients, name: &str, id: &str, answers: &mut Answers) {
    let phone = &mut clients.automation;
    let point = || tap(name, id).point;
    let text = || "text".to_owned();
    ask!(
        answers,
        phone,
        name,
        tap,
        TapRequest,
        app_bundle_id = app(),
        point = point()
    );
    ask!(
        answers,
        phone,
        name,
        long_press,
        LongPressRequest,
        app_bundle_id = app(),
        point = point()
    );
    ask!(
        answers,
        phone,
        name,
        drag,
        DragRequest,
        app_bundle_id = app(),
        from = point(),
        to = point()
    );
    ask!(
        answers,
        phone,
        name,
        type_text,
        TypeTextRequest,
        app_bundle_id = app(),
        text = text()
    );
    ask!(
        answers,
        phone,
        name,
        press_keyboard_return,
        PressKeyboardReturnRequest,
        app_bundle_id = app()
    );
    ask!(
        answers,
        phone,
        name,
        press_keyboard_delete,
        PressKeyboardDeleteRequest,
        app_bundle_id = app()
    );
}

async fn others(clients: &mut Clients, name: &str, answers: &mut Answers) {
    let phone = &mut clients.automation;
    let home = pb::Button::Home.into();
    let other = || "c-1".to_owned();
    ask!(
        answers,
        phone,
        name,
        press_button,
        PressButtonRequest,
        button = home
    );
    ask!(
        answers,
        phone,
        name,
        get_viewport,
        GetViewportRequest,
        app_bundle_id = app()
    );
    ask!(
        answers,
        phone,
        name,
        capture_snapshot,
        CaptureSnapshotRequest,
        app_bundle_id = app()
    );
    ask!(
        answers,
        phone,
        name,
        capture_screenshot,
        CaptureScreenshotRequest
    );
    ask!(
        answers,
        phone,
        name,
        get_runner_status,
        GetRunnerStatusRequest
    );
    ask!(
        answers,
        phone,
        name,
        get_runner_command_status,
        GetRunnerCommandStatusRequest,
        command_id = other()
    );
    ask!(answers, phone, name, shutdown_runner, ShutdownRunnerRequest);
}
