//! From the elements of the screen to the nodes of a snapshot.
//!
//! Implements the runner specification's "Snapshot nodes": interactive types,
//! scroll containers and anything with a text; visible; deduplicated by type,
//! texts and geometry; at most [`NODE_CAP`], which already counts as degraded.
//! The root is always listed. A child of an element that is not listed hangs
//! below the nearest one that is.

use std::collections::HashMap;

use fleetgate_runner::reply::{Node, Quality, QualityState, Rect, Snapshot};

use super::element::{Element, Kind};
use super::geometry::nearest;

/// The most nodes that a snapshot holds.
pub(super) const NODE_CAP: usize = 1_500;

/// The texts and the rounded geometry of a node.
type Likeness<'a> = (Kind, [Option<&'a str>; 3], [i32; 4]);

pub(super) fn take(elements: &[Element]) -> Snapshot {
    let mut nodes: Vec<Node> = Vec::new();
    let mut seen: HashMap<Likeness<'_>, u32> = HashMap::new();
    // For each element, the node that its children hang below.
    let mut below: Vec<Option<u32>> = Vec::with_capacity(elements.len());
    for element in elements {
        if nodes.len() == NODE_CAP {
            break;
        }
        let parent = element
            .parent
            .and_then(|parent| below.get(parent).copied().flatten());
        if element.parent.is_some() && !(is_listed(element) && element.is_visible()) {
            below.push(parent);
            continue;
        }
        let likeness = likeness(element);
        if let Some(twin) = seen.get(&likeness) {
            below.push(Some(*twin));
            continue;
        }
        let node = node(element, parent, &nodes);
        seen.insert(likeness, node.index);
        below.push(Some(node.index));
        nodes.push(node);
    }
    Snapshot {
        quality: quality(nodes.len()),
        nodes,
    }
}

fn is_listed(element: &Element) -> bool {
    element.kind.always_listed()
        || element.label.is_some()
        || element.identifier.is_some()
        || element.value.is_some()
}

fn likeness(element: &Element) -> Likeness<'_> {
    let Rect {
        x,
        y,
        width,
        height,
    } = element.rect;
    let texts = [
        element.label.as_deref(),
        element.identifier.as_deref(),
        element.value.as_deref(),
    ];
    (element.kind, texts, [x, y, width, height].map(nearest))
}

fn node(element: &Element, parent: Option<u32>, before: &[Node]) -> Node {
    let above = parent.and_then(|parent| before.get(usize::try_from(parent).ok()?));
    Node {
        index: u32::try_from(before.len()).unwrap_or(u32::MAX),
        kind: element.kind.as_str().to_owned(),
        label: element.label.clone(),
        identifier: element.identifier.clone(),
        value: element.value.clone(),
        rect: finite(element.rect),
        enabled: Some(true),
        focused: element.focused,
        selected: element.selected,
        depth: above.map_or(0, |above| above.depth + 1),
        parent_index: parent,
    }
}

/// What cannot be said on the wire is 0.
fn finite(rect: Rect) -> Rect {
    let axis = |value: f64| if value.is_finite() { value } else { 0.0 };
    Rect {
        x: axis(rect.x),
        y: axis(rect.y),
        width: axis(rect.width),
        height: axis(rect.height),
    }
}

fn quality(nodes: usize) -> Quality {
    let capped = nodes >= NODE_CAP;
    Quality {
        state: if capped {
            QualityState::Degraded
        } else {
            QualityState::Healthy
        },
        backend: "xctest".to_owned(),
        reason: capped.then(|| format!("the snapshot reached its limit of {NODE_CAP} nodes")),
        reason_code: capped.then(|| "node_cap".to_owned()),
    }
}
