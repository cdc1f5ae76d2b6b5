//! Finding one's way on a screen by its accessibility tree, as any client
//! would.

use anyhow::{Context as _, bail};
use fleetgate_proto::v1::point::Place;
use fleetgate_proto::v1::{AbsolutePoint, SnapshotNode};

/// The first element of a type of which something is true.
pub(super) fn find<'a>(
    nodes: &'a [SnapshotNode],
    kind: &str,
    is: impl Fn(&SnapshotNode) -> bool,
) -> anyhow::Result<&'a SnapshotNode> {
    let found = nodes.iter().find(|node| node.r#type == kind && is(node));
    found.with_context(|| format!("the tree has no such {kind}"))
}

/// What an element is called.
pub(super) fn label(node: &SnapshotNode) -> &str {
    node.label
        .as_deref()
        .or(node.identifier.as_deref())
        .unwrap_or(&node.r#type)
}

/// The middle of an element, where a finger would aim.
pub(super) fn middle(node: &SnapshotNode) -> anyhow::Result<AbsolutePoint> {
    match node.rect {
        Some(rect) if rect.width > 0.0 && rect.height > 0.0 => Ok(AbsolutePoint {
            x: rect.x + rect.width / 2.0,
            y: rect.y + rect.height / 2.0,
        }),
        Some(_) | None => bail!(
            "{} {:?} has no place on the screen",
            node.r#type,
            label(node)
        ),
    }
}

/// A place for a tap.
pub(super) fn place(node: &SnapshotNode) -> anyhow::Result<Option<Place>> {
    Ok(Some(Place::Absolute(middle(node)?)))
}

/// Width and height as a PNG's own header states them.
pub(super) fn png_dimensions(png: &[u8]) -> Option<(u32, u32)> {
    let header = png.strip_prefix(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR")?;
    let (width, rest) = header.split_first_chunk()?;
    let height = rest.first_chunk()?;
    Some((u32::from_be_bytes(*width), u32::from_be_bytes(*height)))
}

#[cfg(test)]
mod tests {
    use fleetgate_proto::v1::Rect;

    use super::*;

    fn button(width: f64) -> SnapshotNode {
        SnapshotNode {
            r#type: "Button".to_owned(),
            label: Some("Go".to_owned()),
            rect: Some(Rect {
                x: 10.0,
                y: 20.0,
                width,
                height: 10.0,
            }),
            ..SnapshotNode::default()
        }
    }

    #[test]
    fn a_finger_aims_at_the_middle_of_what_has_a_place() {
        assert_eq!(
            middle(&button(4.0)).unwrap(),
            AbsolutePoint { x: 12.0, y: 25.0 }
        );
        assert!(middle(&button(0.0)).is_err());
    }

    #[test]
    fn an_element_is_found_by_type_and_by_what_is_true_of_it() {
        let nodes = [button(1.0), button(2.0)];
        let wide = find(&nodes, "Button", |node| {
            node.rect.is_some_and(|rect| rect.width > 1.0)
        });
        assert_eq!(wide.unwrap(), &nodes[1]);
        assert!(find(&nodes, "Switch", |_| true).is_err());
    }

    #[test]
    fn the_size_of_a_picture_is_read_from_the_picture() {
        let png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x03\x0c\0\0\x06\xa8rest";
        assert_eq!(png_dimensions(png), Some((780, 1704)));
        assert_eq!(png_dimensions(b"\x89PNG\r\n\x1a\n"), None);
        assert_eq!(png_dimensions(b"GIF89a"), None);
    }
}
