//! The springboard: an icon for each app. Tapping one brings its app to front.

use fleetgate_runner::BundleId;

use super::STATUS_BAR;
use crate::ui::DEMO_BUNDLE;
use crate::ui::element::{Action, Element, Elements, Kind, Look};
use crate::ui::geometry::{of_viewport, rect};
use crate::ui::model::Model;

const COLUMNS: u32 = 4;
/// The size of an icon with its label.
const ICON: (f64, f64) = (76.0, 88.0);

pub(super) fn lay_out(model: &Model) -> Elements {
    let screen = of_viewport(model.viewport());
    let root = Element::new(Kind::Application, screen)
        .label("SpringBoard")
        .look(Look::Wallpaper);
    let (mut elements, root) = Elements::with_root(root);
    let window = elements.add(root, Element::new(Kind::Window, screen));
    let (width, height) = ICON;
    let cell = (screen.width - 32.0) / f64::from(COLUMNS);
    for (place, app) in (0_u32..).zip(&model.installed) {
        let (column, line) = (f64::from(place % COLUMNS), f64::from(place / COLUMNS));
        let left = 16.0 + column * cell + (cell - width) / 2.0;
        let top = STATUS_BAR + 24.0 + line * (height + 16.0);
        let icon = Element::new(Kind::Icon, rect(left, top, width, height))
            .label(app_name(app))
            .identifier(app.as_str())
            .look(Look::AppIcon(place))
            .acts(Action::Launch(app.clone()));
        elements.add(window, icon);
    }
    elements
}

/// `Settings` for `com.example.settings`.
pub(super) fn app_name(app: &BundleId) -> String {
    if app.as_str() == DEMO_BUNDLE {
        return "Settings".to_owned();
    }
    let last = app.as_str().rsplit('.').next().unwrap_or_default();
    let mut letters = last.chars();
    letters.next().map_or_else(
        || app.to_string(),
        |first| first.to_uppercase().chain(letters).collect(),
    )
}
