//! The screen as its callers see it: gestures in, snapshots and pictures out.

use std::time::Duration;

use fleetgate_runner::reply::{Node, Snapshot};
use fleetgate_runner::{AppPoint, BundleId, Button};

use super::*;

mod anything;
mod configs;
mod pictures;
mod snapshots;
mod touches;

fn demo() -> BundleId {
    DEMO_BUNDLE.parse().unwrap()
}

fn point(x: f64, y: f64) -> AppPoint {
    AppPoint::new(x, y).unwrap()
}

fn screen() -> Screen {
    Screen::new(ScreenConfig::default())
}

fn look(screen: &Screen) -> Snapshot {
    screen.snapshot(&demo())
}

fn find(screen: &Screen, what: impl Fn(&Node) -> bool) -> Option<Node> {
    look(screen).nodes.into_iter().find(|node| what(node))
}

fn by_id(screen: &Screen, identifier: &str) -> Node {
    let identifier = format!("{DEMO_BUNDLE}.{identifier}");
    find(screen, |node| {
        node.identifier.as_deref() == Some(&identifier)
    })
    .unwrap_or_else(|| panic!("{identifier} is not on the screen"))
}

fn key(screen: &Screen, label: &str) -> Node {
    find(screen, |node| {
        node.label.as_deref() == Some(label) && node.rect.y > 500.0
    })
    .unwrap()
}

fn middle(node: &Node) -> AppPoint {
    point(
        node.rect.x + node.rect.width / 2.0,
        node.rect.y + node.rect.height / 2.0,
    )
}

fn tap(screen: &mut Screen, identifier: &str) -> Hit {
    let at = middle(&by_id(screen, identifier));
    screen.tap(at, 1)
}

/// A screen with the detail page of the row `General` open.
fn general() -> Screen {
    let mut screen = screen();
    let hit = tap(&mut screen, "general");
    assert_eq!(
        hit.change,
        Change::Opened {
            row: format!("{DEMO_BUNDLE}.general")
        }
    );
    screen
}

/// A drag up the middle of the list, with a rest before it is lifted or not.
fn drag_up(screen: &mut Screen, points: f64, settle: bool) -> Hit {
    screen.drag(
        point(200.0, 700.0),
        point(200.0, 700.0 - points),
        Duration::from_millis(500),
        Duration::from_millis(50),
        settle,
    )
}
