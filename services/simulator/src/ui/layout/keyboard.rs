//! The keyboard: letters, shift, delete, space and return. It covers the lower
//! part of an app and changes nothing of the app's frame.

use fleetgate_runner::reply::Rect;

use crate::ui::element::{Action, Element, Elements, Kind, Look, Parent};
use crate::ui::geometry::{inset, rect};
use crate::ui::settings::Focus;

const HEIGHT: f64 = 256.0;
const LINE: f64 = 54.0;
const LETTERS: [&str; 3] = ["qwertyuiop", "asdfghjkl", "zxcvbnm"];

pub(super) fn add(elements: &mut Elements, window: Parent, screen: Rect, focus: Focus) {
    let plate = rect(0.0, screen.height - HEIGHT, screen.width, HEIGHT);
    let keyboard = Element::new(Kind::Keyboard, plate)
        .identifier("keyboard")
        .look(Look::Plate)
        .absorbs();
    let keyboard = elements.add_clipping(window, keyboard);
    let unit = (screen.width - 6.0) / 10.0;
    // A key's place by its line, its left edge and its width, in tenths of the width.
    let key = |line: f64, left: f64, width: f64| {
        let cell = rect(
            3.0 + left * unit,
            plate.y + 6.0 + line * LINE,
            width * unit,
            LINE,
        );
        inset(cell, 3.0, 5.0)
    };

    for ((letters, line), left) in LETTERS
        .into_iter()
        .zip([0.0, 1.0, 2.0])
        .zip([0.0, 0.5, 1.5])
    {
        let mut left = left;
        for letter in letters.chars() {
            let letter = if focus.shift {
                letter.to_ascii_uppercase()
            } else {
                letter
            };
            let at = key(line, left, 1.0);
            left += 1.0;
            elements.add(keyboard, letter_key(at, letter.to_string(), letter));
        }
    }
    let mut shift = function_key(Kind::Button, key(2.0, 0.0, 1.5), "shift", Action::Shift);
    shift.selected = focus.shift.then_some(true);
    elements.add(keyboard, shift);
    let delete = function_key(Kind::Key, key(2.0, 8.5, 1.5), "delete", Action::Delete);
    elements.add(keyboard, delete);
    elements.add(
        keyboard,
        letter_key(key(3.0, 0.0, 7.0), "space".to_owned(), ' '),
    );
    let submit = function_key(Kind::Button, key(3.0, 7.0, 3.0), "return", Action::Return);
    elements.add(keyboard, submit.identifier("Return"));
}

fn letter_key(at: Rect, label: String, letter: char) -> Element {
    Element::new(Kind::Key, at)
        .identifier(label.clone())
        .label(label)
        .look(Look::Key { function: false })
        .acts(Action::Letter(letter))
}

fn function_key(kind: Kind, at: Rect, label: &str, action: Action) -> Element {
    Element::new(kind, at)
        .label(label)
        .identifier(label)
        .look(Look::Key { function: true })
        .acts(action)
}
