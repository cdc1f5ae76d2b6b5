//! What a person in front of a simulated phone could see and do by hand.

use fleetgate_runner::{AppPoint, BundleId};
use fleetgate_simulator::Phone;
use fleetgate_simulator::ui::AppState;

use crate::APP;

/// The row whose detail page tests use.
pub const ROW: &str = "com.example.settings.general";

/// The app's bundle id.
pub fn app() -> BundleId {
    APP.parse().expect("a bundle id")
}

/// The centre of what the app shows under an identifier.
pub fn centre(phone: &Phone, identifier: &str) -> (f64, f64) {
    let shown = phone.with_screen(|screen| screen.snapshot(&app()));
    let node = shown
        .nodes
        .iter()
        .find(|node| node.identifier.as_deref() == Some(identifier));
    let rect = node
        .unwrap_or_else(|| panic!("nothing is called {identifier}"))
        .rect;
    (rect.x + rect.width / 2.0, rect.y + rect.height / 2.0)
}

/// Taps by hand on what the app shows under an identifier.
pub fn touch(phone: &Phone, identifier: &str) {
    let (x, y) = centre(phone, identifier);
    let at = AppPoint::new(x, y).expect("a place");
    phone.with_screen(|screen| screen.tap(at, 1));
}

/// Opens the detail page of [`ROW`].
pub fn open(phone: &Phone) {
    touch(phone, ROW);
    assert_eq!(phone.screen().page, ROW);
}

/// Opens the detail page of [`ROW`] and gives its text field the focus.
pub fn focus(phone: &Phone) {
    open(phone);
    touch(phone, &format!("{ROW}.name"));
    assert!(phone.screen().focused);
}

/// What stands in the text field of [`ROW`].
pub fn text(phone: &Phone) -> String {
    phone.screen().texts.get(ROW).cloned().unwrap_or_default()
}

/// How often the button of [`ROW`] was tapped.
pub fn taps(phone: &Phone) -> u32 {
    phone
        .screen()
        .counters
        .get(ROW)
        .copied()
        .unwrap_or_default()
}

/// Sends the app to the background.
pub fn leave(phone: &Phone) {
    phone.set_app_state(&app(), AppState::Background);
}

/// Ends the app.
pub fn quit(phone: &Phone) {
    phone.set_app_state(&app(), AppState::NotRunning);
}

/// True if the list is scrolled by so many points.
pub fn scrolled(phone: &Phone, points: f64) -> bool {
    (phone.screen().scroll - points).abs() < 0.001
}
