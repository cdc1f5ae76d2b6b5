//! What an accessibility tree tells.

use std::fmt;

use fleetgate_proto::v1::{CaptureSnapshotResponse, Rect, SnapshotNode};
use serde::Serialize;

use crate::output::{clean, lines};
use crate::view::receipt::ReceiptView;
use crate::words;

/// How far a line may be indented: depth comes from the phone.
const MAX_DEPTH: usize = 64;

/// A tree as JSON: a flat list in which `parent_index` makes the tree.
#[derive(Debug, Serialize)]
pub(crate) struct TreeView {
    receipt: Option<ReceiptView>,
    quality: Option<QualityView>,
    nodes: Vec<NodeView>,
}

/// How far the tree can be trusted.
#[derive(Debug, Serialize)]
struct QualityView {
    state: String,
    backend: String,
    reason: Option<String>,
    reason_code: Option<String>,
}

/// One element.
#[derive(Debug, Serialize)]
struct NodeView {
    index: u32,
    #[serde(rename = "type")]
    kind: String,
    label: Option<String>,
    identifier: Option<String>,
    value: Option<String>,
    rect: Option<RectView>,
    enabled: Option<bool>,
    focused: Option<bool>,
    selected: Option<bool>,
    depth: u32,
    parent_index: Option<u32>,
}

/// Where it is.
#[derive(Debug, Serialize)]
struct RectView {
    x: f64,
    y: f64,
    width: f64,
    height: f64,
}

impl From<CaptureSnapshotResponse> for TreeView {
    fn from(snapshot: CaptureSnapshotResponse) -> Self {
        Self {
            receipt: snapshot.receipt.map(ReceiptView::from),
            quality: snapshot.quality.map(|quality| QualityView {
                state: words::snapshot_state(quality.state),
                backend: quality.backend,
                reason: quality.reason,
                reason_code: quality.reason_code,
            }),
            nodes: snapshot.nodes.into_iter().map(NodeView::from).collect(),
        }
    }
}

impl From<SnapshotNode> for NodeView {
    fn from(node: SnapshotNode) -> Self {
        Self {
            index: node.index,
            kind: node.r#type,
            label: node.label,
            identifier: node.identifier,
            value: node.value,
            rect: node.rect.map(RectView::from),
            enabled: node.enabled,
            focused: node.focused,
            selected: node.selected,
            depth: node.depth,
            parent_index: node.parent_index,
        }
    }
}

impl From<Rect> for RectView {
    fn from(rect: Rect) -> Self {
        Self {
            x: rect.x,
            y: rect.y,
            width: rect.width,
            height: rect.height,
        }
    }
}

impl TreeView {
    /// The tree, a node a line, indented by its depth.
    pub(crate) fn text(&self) -> String {
        lines(self.nodes.iter().map(NodeView::to_string))
    }

    /// What to know before relying on it; `None` if it is whole.
    pub(crate) fn caveat(&self) -> Option<String> {
        let quality = self
            .quality
            .as_ref()
            .filter(|quality| quality.state != "healthy")?;
        let reason = quality
            .reason
            .as_deref()
            .or(quality.reason_code.as_deref())
            .unwrap_or("no reason given");
        Some(format!("the tree is {}: {reason}", quality.state))
    }
}

impl fmt::Display for NodeView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let depth = usize::try_from(self.depth)
            .unwrap_or(MAX_DEPTH)
            .min(MAX_DEPTH);
        write!(f, "{:1$}{2}", "", depth * 2, clean(&self.kind))?;
        // Debug's quotes keep control characters off the terminal.
        if let Some(label) = &self.label {
            write!(f, " {label:?}")?;
        }
        if let Some(value) = &self.value {
            write!(f, " = {value:?}")?;
        }
        if let Some(identifier) = &self.identifier {
            write!(f, " #{}", clean(identifier))?;
        }
        if let Some(RectView {
            x,
            y,
            width,
            height,
        }) = &self.rect
        {
            write!(f, "  ({x}, {y}) {width} x {height}")?;
        }
        let flags = [
            (self.enabled == Some(false), "disabled"),
            (self.focused == Some(true), "focused"),
            (self.selected == Some(true), "selected"),
        ];
        for (_, flag) in flags.iter().filter(|(set, _)| *set) {
            write!(f, " [{flag}]")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use fleetgate_proto::v1::{SnapshotQuality, SnapshotState};

    use super::*;

    fn snapshot() -> CaptureSnapshotResponse {
        let window = SnapshotNode {
            r#type: "Window".to_owned(),
            rect: Some(Rect {
                x: 0.0,
                y: 0.0,
                width: 390.0,
                height: 844.0,
            }),
            ..SnapshotNode::default()
        };
        let field = SnapshotNode {
            index: 1,
            r#type: "TextField".to_owned(),
            label: Some("Name".to_owned()),
            identifier: Some("name-field".to_owned()),
            value: Some("A\u{1b}da".to_owned()),
            rect: Some(Rect {
                x: 16.0,
                y: 100.5,
                width: 358.0,
                height: 44.0,
            }),
            enabled: Some(true),
            focused: Some(true),
            depth: 1,
            parent_index: Some(0),
            ..SnapshotNode::default()
        };
        CaptureSnapshotResponse {
            receipt: None,
            nodes: vec![window, field],
            quality: Some(SnapshotQuality {
                state: SnapshotState::Healthy.into(),
                ..SnapshotQuality::default()
            }),
        }
    }

    #[test]
    fn a_tree_is_indented_and_shows_types_labels_and_rects() {
        assert_eq!(
            TreeView::from(snapshot()).text(),
            "Window  (0, 0) 390 x 844\n\
             \x20 TextField \"Name\" = \"A\\u{1b}da\" #name-field  (16, 100.5) 358 x 44 [focused]\n"
        );
    }

    #[test]
    fn a_cut_tree_comes_with_a_caveat_and_a_whole_one_without() {
        assert_eq!(TreeView::from(snapshot()).caveat(), None);
        let cut = SnapshotQuality {
            state: SnapshotState::Degraded.into(),
            reason: Some("more than 1500 nodes".to_owned()),
            ..SnapshotQuality::default()
        };
        let caveat = TreeView::from(CaptureSnapshotResponse {
            quality: Some(cut),
            ..snapshot()
        })
        .caveat();
        assert_eq!(
            caveat.as_deref(),
            Some("the tree is degraded: more than 1500 nodes")
        );
    }

    #[test]
    fn json_nodes_keep_every_field() {
        let json = serde_json::to_value(TreeView::from(snapshot())).unwrap();
        assert_eq!(
            json["nodes"][1],
            serde_json::json!({
                "index": 1,
                "type": "TextField",
                "label": "Name",
                "identifier": "name-field",
                "value": "A\u{1b}da",
                "rect": { "x": 16.0, "y": 100.5, "width": 358.0, "height": 44.0 },
                "enabled": true,
                "focused": true,
                "selected": null,
                "depth": 1,
                "parent_index": 0,
            })
        );
    }
}
