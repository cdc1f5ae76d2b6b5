//! A row's detail page: a text field, a switch and a button that counts its
//! taps and has a menu.

use fleetgate_runner::reply::Rect;

use super::{MARGIN, ROW, STATUS_BAR, keyboard, settings_window, text};
use crate::ui::element::{Action, Element, Elements, Kind, Look, Parent, TextLook};
use crate::ui::geometry::{inset, of_viewport, rect};
use crate::ui::model::Model;
use crate::ui::settings::{Item, Settings};

const BAR: f64 = 44.0;
/// From one card to the next.
const STEP: f64 = ROW + 20.0;
/// The size of a switch.
const SWITCH: (f64, f64) = (51.0, 31.0);

pub(super) fn lay_out(model: &Model, row: u32) -> Elements {
    let screen = of_viewport(model.viewport());
    let (mut elements, window) = settings_window(screen);
    add_bar(&mut elements, window, screen, row);

    let item = model.settings.item(row);
    let id = Settings::identifier(row);
    let top = STATUS_BAR + BAR + 16.0;
    let card = |line: f64| rect(MARGIN, top + line * STEP, screen.width - 2.0 * MARGIN, ROW);
    add_field(
        &mut elements,
        window,
        card(0.0),
        &id,
        &item,
        model.settings.focus.is_some(),
    );
    add_switch(&mut elements, window, card(1.0), &id, &item);
    add_counter(&mut elements, window, card(2.0), &id, &item);

    if let Some(focus) = model.settings.focus {
        keyboard::add(&mut elements, window, screen, focus);
    }
    if model.settings.menu {
        add_menu(&mut elements, window, screen, card(2.0), &id);
    }
    elements
}

fn add_bar(elements: &mut Elements, window: Parent, screen: Rect, row: u32) {
    let name = Settings::name(row);
    let bar = rect(0.0, STATUS_BAR, screen.width, BAR);
    let bar = Element::new(Kind::NavigationBar, bar)
        .identifier(name.clone())
        .absorbs();
    let bar = elements.add(window, bar);
    let back = Element::new(Kind::Button, rect(8.0, STATUS_BAR, 106.0, BAR))
        .label("Settings")
        .identifier("BackButton")
        .look(Look::Back)
        .acts(Action::Back);
    elements.add(bar, back);
    let title = rect(120.0, STATUS_BAR + 10.0, screen.width - 240.0, 24.0);
    elements.add(bar, text(title, name, TextLook::Title));
}

/// The white ground of one control. It has no texts, so no snapshot lists it.
fn add_card(elements: &mut Elements, window: Parent, at: Rect) -> Parent {
    let card = Element::new(Kind::Other, at).look(Look::Card {
        first: true,
        last: true,
    });
    elements.add(window, card)
}

fn add_field(
    elements: &mut Elements,
    window: Parent,
    at: Rect,
    id: &str,
    item: &Item,
    focused: bool,
) {
    let card = add_card(elements, window, at);
    let mut field = Element::new(Kind::TextField, inset(at, 16.0, 4.0))
        .label("Name")
        .identifier(format!("{id}.name"))
        .value(item.text.clone())
        .look(Look::Field { focused })
        .acts(Action::Focus);
    field.focused = focused.then_some(true);
    elements.add(card, field);
}

fn add_switch(elements: &mut Elements, window: Parent, at: Rect, id: &str, item: &Item) {
    let card = add_card(elements, window, at);
    let label = rect(at.x + 16.0, at.y + 14.0, at.width - 100.0, 24.0);
    elements.add(card, text(label, "Enabled", TextLook::Body));
    let (width, height) = SWITCH;
    let place = rect(
        at.x + at.width - width - 14.0,
        at.y + (at.height - height) / 2.0,
        width,
        height,
    );
    let switch = Element::new(Kind::Switch, place)
        .label("Enabled")
        .identifier(format!("{id}.enabled"))
        .value(if item.on { "1" } else { "0" })
        .look(Look::Switch { on: item.on })
        .acts(Action::Toggle);
    elements.add(card, switch);
}

fn add_counter(elements: &mut Elements, window: Parent, at: Rect, id: &str, item: &Item) {
    let card = add_card(elements, window, at);
    let times = if item.taps == 1 { "time" } else { "times" };
    let button = Element::new(Kind::Button, inset(at, 16.0, 4.0))
        .label(format!("Tapped {} {times}", item.taps))
        .identifier(format!("{id}.counter"))
        .look(Look::Text(TextLook::Action))
        .acts(Action::Count);
    elements.add(card, button);
}

fn add_menu(elements: &mut Elements, window: Parent, screen: Rect, under: Rect, id: &str) {
    let veil = Element::new(Kind::Button, screen)
        .label("Dismiss context menu")
        .identifier("PopoverDismissRegion")
        .look(Look::Veil)
        .acts(Action::CloseMenu);
    elements.add(window, veil);
    let at = rect(under.x, under.y + ROW + 8.0, 230.0, 44.0);
    let menu = Element::new(Kind::Menu, at)
        .identifier(format!("{id}.counter.menu"))
        .look(Look::Sheet)
        .absorbs();
    let menu = elements.add(window, menu);
    let reset = Element::new(Kind::Button, inset(at, 16.0, 2.0))
        .label("Reset Counter")
        .identifier(format!("{id}.counter.reset"))
        .look(Look::Text(TextLook::Destructive))
        .acts(Action::ResetCounter);
    elements.add(menu, reset);
}
