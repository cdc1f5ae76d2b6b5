//! The settings app's list: rows in groups of [`GROUP`], or a dense grid.
//!
//! Only rows in sight become elements, so that a list of any length costs what
//! a screenful costs.

use fleetgate_runner::AppPoint;
use fleetgate_runner::reply::Rect;

use super::{MARGIN, ROW, STATUS_BAR, settings_window, text};
use crate::ui::element::{Action, Element, Elements, Kind, Look, Parent, TextLook};
use crate::ui::geometry::{contains, intersection, is_empty, of_viewport, rect, whole};
use crate::ui::model::Model;
use crate::ui::settings::Settings;

/// Rows between two gaps.
const GROUP: u32 = 5;
/// The gap between groups.
const GAP: f64 = 20.0;
/// Space below the last row.
const FOOT: f64 = 40.0;
/// The height of the bar with the title.
const TITLE_BAR: f64 = 60.0;
/// The size of a cell of the dense grid.
const SPECK: (f64, f64) = (24.0, 8.0);

/// Where the list is, below the title.
pub(in crate::ui) fn table(model: &Model) -> Rect {
    let screen = of_viewport(model.viewport());
    let top = STATUS_BAR + TITLE_BAR;
    rect(0.0, top, screen.width, screen.height - top)
}

/// How far the list can be scrolled.
pub(in crate::ui) fn max_scroll(model: &Model) -> f64 {
    let end = match model.config.rows.checked_sub(1) {
        None => 0.0,
        Some(last) => {
            let last = place(model, last);
            last.y + last.height + FOOT
        }
    };
    (end - table(model).height).max(0.0)
}

/// The place in the list of the row that is seen at a point.
pub(in crate::ui) fn index_at(model: &Model, point: AppPoint) -> Option<usize> {
    if !contains(table(model), point) {
        return None;
    }
    in_sight(model)
        .find(|index| contains(on_screen(model, *index), point))
        .and_then(as_usize)
}

/// The place in the list that is nearest in height to a point, to drop a row.
pub(in crate::ui) fn nearest_index(model: &Model, point: AppPoint) -> Option<usize> {
    let distance = |index: &u32| {
        let at = on_screen(model, *index);
        (at.x + at.width / 2.0 - point.x).hypot(at.y + at.height / 2.0 - point.y)
    };
    in_sight(model)
        .min_by(|a, b| distance(a).total_cmp(&distance(b)))
        .and_then(as_usize)
}

fn as_usize(index: u32) -> Option<usize> {
    usize::try_from(index).ok()
}

fn columns(model: &Model) -> u32 {
    if model.config.dense {
        whole(f64::from(model.config.width) / SPECK.0).max(1)
    } else {
        1
    }
}

/// Where the row at `index` is within the list's contents.
fn place(model: &Model, index: u32) -> Rect {
    if model.config.dense {
        let columns = columns(model);
        let (width, height) = SPECK;
        let (column, line) = (index % columns, index / columns);
        return rect(
            f64::from(column) * width,
            f64::from(line) * height,
            width,
            height,
        );
    }
    let top = f64::from(index) * ROW + f64::from(index / GROUP) * GAP + GAP / 2.0;
    rect(
        MARGIN,
        top,
        f64::from(model.config.width) - 2.0 * MARGIN,
        ROW,
    )
}

fn on_screen(model: &Model, index: u32) -> Rect {
    let within = place(model, index);
    rect(
        within.x,
        within.y - model.settings.scroll + table(model).y,
        within.width,
        within.height,
    )
}

/// The places in the list whose rows can be seen.
fn in_sight(model: &Model) -> impl Iterator<Item = u32> {
    let table = table(model);
    // A lower bound: every row is at least this far down per step.
    let step = if model.config.dense {
        SPECK.1
    } else {
        ROW + GAP / f64::from(GROUP)
    };
    let lines_above = whole((model.settings.scroll / step - f64::from(GROUP)).max(0.0));
    let first = lines_above
        .saturating_mul(columns(model))
        .min(model.config.rows);
    (first..model.config.rows)
        .skip_while(move |index| is_empty(intersection(on_screen(model, *index), table)))
        .take_while(move |index| !is_empty(intersection(on_screen(model, *index), table)))
}

pub(super) fn lay_out(model: &Model) -> Elements {
    let screen = of_viewport(model.viewport());
    let (mut elements, window) = settings_window(screen);
    let bar = rect(0.0, STATUS_BAR, screen.width, TITLE_BAR);
    let bar = elements.add(
        window,
        Element::new(Kind::NavigationBar, bar)
            .identifier("Settings")
            .absorbs(),
    );
    let title = rect(MARGIN, STATUS_BAR + 12.0, 200.0, 40.0);
    elements.add(bar, text(title, "Settings", TextLook::LargeTitle));

    let table = table(model);
    let list = Element::new(Kind::Table, table)
        .identifier("com.example.settings.list")
        .absorbs();
    let list = elements.add_clipping(window, list);
    for index in in_sight(model) {
        let at = on_screen(model, index);
        let row = as_usize(index).and_then(|index| model.settings.order.get(index));
        let Some(row) = row.copied() else { continue };
        if model.config.dense {
            add_speck(&mut elements, list, at, row);
        } else {
            add_row(&mut elements, list, at, (index, row), model);
        }
    }
    add_scroll_bar(&mut elements, list, model);
    elements
}

fn add_speck(elements: &mut Elements, list: Parent, at: Rect, row: u32) {
    let cell = Element::new(Kind::Cell, at)
        .identifier(format!("{}.{row}", crate::ui::DEMO_BUNDLE))
        .acts(Action::OpenRow(row));
    let cell = elements.add(list, cell);
    let label = Element::new(Kind::StaticText, at).label(row.to_string());
    elements.add(cell, label.look(Look::Speck));
}

fn add_row(
    elements: &mut Elements,
    list: Parent,
    at: Rect,
    (index, row): (u32, u32),
    model: &Model,
) {
    let name = Settings::name(row);
    let starts = index.is_multiple_of(GROUP);
    let ends = index % GROUP == GROUP - 1 || index + 1 == model.config.rows;
    let cell = Element::new(Kind::Cell, at)
        .label(name.clone())
        .identifier(Settings::identifier(row))
        .look(Look::Card {
            first: starts,
            last: ends,
        })
        .acts(Action::OpenRow(row));
    let cell = elements.add(list, cell);

    let tile = rect(at.x + 14.0, at.y + 11.0, 30.0, 30.0);
    elements.add(cell, Element::new(Kind::Image, tile).look(Look::Tile(row)));
    let label = rect(at.x + 58.0, at.y + 14.0, at.width - 160.0, 24.0);
    elements.add(cell, text(label, name, TextLook::Body));
    let state = rect(at.x + at.width - 100.0, at.y + 14.0, 68.0, 24.0);
    let on = if model.settings.item(row).on {
        "On"
    } else {
        "Off"
    };
    elements.add(cell, text(state, on, TextLook::Detail));
    let chevron = rect(at.x + at.width - 24.0, at.y + 19.0, 8.0, 14.0);
    let chevron = Element::new(Kind::Image, chevron).identifier("chevron.forward");
    elements.add(cell, chevron.look(Look::Chevron));
}

/// Shows how much of the list is in sight, and where in it.
fn add_scroll_bar(elements: &mut Elements, list: Parent, model: &Model) {
    let (table, max) = (table(model), max_scroll(model));
    if max <= 0.0 {
        return;
    }
    let progress = model.settings.scroll / max;
    let length = (table.height * table.height / (table.height + max)).max(30.0);
    let top = table.y + progress * (table.height - length);
    let pages = whole((max / table.height).ceil()) + 1;
    let bar = Element::new(Kind::Other, rect(table.width - 6.0, top, 3.0, length))
        .label(format!("Vertical scroll bar, {pages} pages"))
        .value(format!("{}%", whole(progress * 100.0)))
        .look(Look::Thumb);
    elements.add(list, bar);
}
