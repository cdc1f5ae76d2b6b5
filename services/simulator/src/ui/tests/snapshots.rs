//! What a snapshot lists.

use fleetgate_runner::reply::QualityState;

use super::*;
use crate::ui::element::{Element, Elements, Kind};
use crate::ui::geometry::rect;
use crate::ui::snapshot::{NODE_CAP, take};

fn dense(rows: u32) -> Screen {
    Screen::new(ScreenConfig {
        rows,
        dense: true,
        ..ScreenConfig::default()
    })
}

#[test]
fn the_tree_is_well_formed() {
    let mut screen = general();
    tap(&mut screen, "general.name");
    for (place, node) in (0_u32..).zip(look(&screen).nodes.iter()) {
        assert_eq!(node.index, place);
        assert_eq!(node.parent_index.is_none(), place == 0);
        assert_eq!(node.depth == 0, place == 0);
        assert!(node.parent_index.is_none_or(|parent| parent < place));
    }
}

#[test]
fn rows_are_named_as_on_a_phone() {
    let screen = screen();
    let nodes = look(&screen).nodes;
    assert_eq!(
        (nodes[0].kind.as_str(), nodes[0].label.as_deref()),
        ("Application", Some("Settings"))
    );
    let row = by_id(&screen, "general");
    assert_eq!(
        (row.kind.as_str(), row.label.as_deref()),
        ("Cell", Some("General"))
    );
    let list = &nodes[usize::try_from(row.parent_index.unwrap()).unwrap()];
    assert_eq!(list.kind, "Table");
    assert_eq!(look(&screen).quality.state, QualityState::Healthy);
}

#[test]
fn elements_without_texts_are_passed_over_unless_they_can_be_used() {
    let nodes = look(&general()).nodes;
    assert!(!nodes.iter().any(|node| node.kind == "Window"));
    assert!(!nodes.iter().any(|node| node.kind == "Other"));
}

#[test]
fn rows_out_of_sight_are_not_listed() {
    let screen = Screen::new(ScreenConfig {
        rows: 100_000,
        ..ScreenConfig::default()
    });
    let cells = look(&screen)
        .nodes
        .iter()
        .filter(|node| node.kind == "Cell")
        .count();
    assert!((10..20).contains(&cells), "{cells} cells");
}

#[test]
fn a_dense_page_reaches_the_cap_and_says_so() {
    let snapshot = look(&dense(2_000));
    assert_eq!(snapshot.nodes.len(), 1_500);
    assert_eq!(snapshot.quality.state, QualityState::Degraded);
    assert_eq!(snapshot.quality.reason_code.as_deref(), Some("node_cap"));
    assert!(snapshot.quality.reason.is_some());
}

#[test]
fn exactly_at_the_cap_is_degraded_and_one_less_is_not() {
    let screen = rect(0.0, 0.0, 100.0, 100.0);
    let with = |nodes: usize| {
        let (mut elements, root) = Elements::with_root(Element::new(Kind::Application, screen));
        for node in 1..nodes {
            elements.add(
                root,
                Element::new(Kind::Button, screen).label(node.to_string()),
            );
        }
        take(elements.as_slice())
    };
    let at = with(NODE_CAP);
    assert_eq!(
        (at.nodes.len(), at.quality.state),
        (NODE_CAP, QualityState::Degraded)
    );
    let below = with(NODE_CAP - 1);
    assert_eq!(
        (below.nodes.len(), below.quality.state),
        (NODE_CAP - 1, QualityState::Healthy)
    );
    assert_eq!(with(NODE_CAP + 1).nodes.len(), NODE_CAP);
}

#[test]
fn twins_are_listed_once_and_their_children_hang_below_the_first() {
    let screen = rect(0.0, 0.0, 100.0, 100.0);
    let (mut elements, root) = Elements::with_root(Element::new(Kind::Application, screen));
    let cell = || Element::new(Kind::Cell, screen).label("twin");
    elements.add(root, cell());
    let second = elements.add(root, cell());
    elements.add(
        second,
        Element::new(Kind::StaticText, screen).label("child"),
    );
    let nodes = take(elements.as_slice()).nodes;
    assert_eq!(nodes.len(), 3);
    assert_eq!((nodes[2].parent_index, nodes[2].depth), (Some(1), 2));
}

#[test]
fn geometry_that_is_no_number_becomes_zero() {
    let null = rect(f64::INFINITY, f64::NAN, f64::NEG_INFINITY, f64::MAX);
    let (elements, _) = Elements::with_root(Element::new(Kind::Application, null));
    let root = &take(elements.as_slice()).nodes[0];
    assert_eq!(root.rect, rect(0.0, 0.0, 0.0, f64::MAX));
}

#[test]
fn what_a_snapshot_lists_can_be_hit_where_it_says() {
    let mut screen = dense(600);
    let cell = look(&screen)
        .nodes
        .into_iter()
        .rfind(|node| node.kind == "Cell")
        .unwrap();
    assert_eq!(cell.identifier.as_deref(), Some("com.example.settings.599"));
    let change = screen.tap(middle(&cell), 1).change;
    assert_eq!(
        change,
        Change::Opened {
            row: "com.example.settings.row-600".to_owned()
        }
    );
}
