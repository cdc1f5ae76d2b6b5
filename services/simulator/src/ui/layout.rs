//! From the state to the elements of the screen.
//!
//! The one place that says where things are. Snapshot, picture and gestures
//! all start from [`lay_out`], so that what a snapshot lists is what the
//! picture shows and what a touch hits.

use fleetgate_runner::reply::Rect;

use super::element::{Element, Elements, Kind, Look, Parent, TextLook};
use super::geometry::{of_viewport, rect};
use super::model::Model;
use super::settings::Page;

mod detail;
mod keyboard;
pub(super) mod list;
mod springboard;

/// The height of the status bar, which belongs to the phone and to no app.
pub(super) const STATUS_BAR: f64 = 54.0;
/// From a page's edge to its groups.
const MARGIN: f64 = 16.0;
/// The height of a row.
const ROW: f64 = 52.0;

/// The elements of what is in front.
pub(super) fn lay_out(model: &Model) -> Elements {
    if model.demo_in_front() {
        return match model.settings.page {
            Page::List => list::lay_out(model),
            Page::Detail(row) => detail::lay_out(model, row),
        };
    }
    match &model.front {
        None => springboard::lay_out(model),
        Some(app) => {
            let screen = of_viewport(model.viewport());
            let root = Element::new(Kind::Application, screen).label(springboard::app_name(app));
            let (mut elements, root) = Elements::with_root(root.look(Look::Page));
            let label = rect(
                MARGIN,
                screen.height / 2.0,
                screen.width - 2.0 * MARGIN,
                24.0,
            );
            elements.add(root, text(label, app.as_str(), TextLook::Title));
            elements
        }
    }
}

/// The settings app's root and its window.
fn settings_window(screen: Rect) -> (Elements, Parent) {
    let root = Element::new(Kind::Application, screen)
        .label("Settings")
        .look(Look::Page);
    let (mut elements, root) = Elements::with_root(root);
    let window = elements.add(root, Element::new(Kind::Window, screen));
    (elements, window)
}

fn text(at: Rect, label: impl Into<String>, look: TextLook) -> Element {
    Element::new(Kind::StaticText, at)
        .label(label)
        .look(Look::Text(look))
}
