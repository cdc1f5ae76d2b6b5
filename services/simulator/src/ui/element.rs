//! One element of the screen: what it is called, where it is, how it looks and
//! what touching it does. Snapshot, picture and gestures all read these.

use fleetgate_runner::BundleId;
use fleetgate_runner::reply::Rect;

use super::geometry::{self, NOWHERE};

/// The `XCUIElement` types that the screen uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Kind {
    Application,
    Window,
    Other,
    NavigationBar,
    Table,
    Cell,
    StaticText,
    Image,
    Button,
    Switch,
    TextField,
    Keyboard,
    Key,
    Menu,
    Icon,
}

impl Kind {
    /// As XCTest spells it.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Application => "Application",
            Self::Window => "Window",
            Self::Other => "Other",
            Self::NavigationBar => "NavigationBar",
            Self::Table => "Table",
            Self::Cell => "Cell",
            Self::StaticText => "StaticText",
            Self::Image => "Image",
            Self::Button => "Button",
            Self::Switch => "Switch",
            Self::TextField => "TextField",
            Self::Keyboard => "Keyboard",
            Self::Key => "Key",
            Self::Menu => "Menu",
            Self::Icon => "Icon",
        }
    }

    /// Interactive, or a scroll container: in a snapshot even without texts.
    pub(super) fn always_listed(self) -> bool {
        match self {
            Self::Table
            | Self::Cell
            | Self::Button
            | Self::Switch
            | Self::TextField
            | Self::Key
            | Self::Icon => true,
            Self::Application
            | Self::Window
            | Self::Other
            | Self::NavigationBar
            | Self::StaticText
            | Self::Image
            | Self::Keyboard
            | Self::Menu => false,
        }
    }
}

/// How an element is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Look {
    /// Not at all: it only holds others.
    Bare,
    /// The grey ground of a page.
    Page,
    /// The springboard's ground.
    Wallpaper,
    /// A white row of a group, round at the group's ends.
    Card { first: bool, last: bool },
    /// A cell of the dense grid, with its label.
    Speck,
    /// The element's label.
    Text(TextLook),
    /// A coloured tile, by number.
    Tile(u32),
    /// A coloured tile with the label under it.
    AppIcon(u32),
    /// The mark of a row that opens a page.
    Chevron,
    /// The button that leaves a page.
    Back,
    /// A switch.
    Switch { on: bool },
    /// A text field: its value, or its label where it is empty.
    Field { focused: bool },
    /// The ground of the keyboard.
    Plate,
    /// A key; pale unless it is a function key.
    Key { function: bool },
    /// The grey veil behind a menu.
    Veil,
    /// The ground of a menu.
    Sheet,
    /// The thumb of a scroll bar.
    Thumb,
}

/// The styles of text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TextLook {
    LargeTitle,
    Title,
    Body,
    /// Grey, at the right.
    Detail,
    /// Blue.
    Action,
    /// Red.
    Destructive,
}

/// What touching an element does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Touch {
    /// It goes to what lies behind.
    Through,
    /// Nothing.
    Absorb,
    /// This.
    Act(Action),
}

/// What a touch can do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Action {
    OpenRow(u32),
    Back,
    Focus,
    Toggle,
    Count,
    ResetCounter,
    CloseMenu,
    Letter(char),
    Shift,
    Delete,
    Return,
    Launch(BundleId),
}

#[derive(Debug, Clone)]
pub(super) struct Element {
    pub(super) kind: Kind,
    pub(super) label: Option<String>,
    pub(super) identifier: Option<String>,
    pub(super) value: Option<String>,
    /// Where it is, whether or not that can be seen.
    pub(super) rect: Rect,
    /// The part of `rect` that can be seen; empty if none.
    pub(super) visible: Rect,
    pub(super) focused: Option<bool>,
    pub(super) selected: Option<bool>,
    /// The place of its parent in the list; only the root has none.
    pub(super) parent: Option<usize>,
    pub(super) look: Look,
    pub(super) touch: Touch,
}

impl Element {
    pub(super) fn new(kind: Kind, rect: Rect) -> Self {
        Self {
            kind,
            label: None,
            identifier: None,
            value: None,
            rect,
            visible: NOWHERE,
            focused: None,
            selected: None,
            parent: None,
            look: Look::Bare,
            touch: Touch::Through,
        }
    }

    pub(super) fn label(mut self, label: impl Into<String>) -> Self {
        self.label = Some(label.into());
        self
    }

    pub(super) fn identifier(mut self, identifier: impl Into<String>) -> Self {
        self.identifier = Some(identifier.into());
        self
    }

    /// An empty value is none.
    pub(super) fn value(mut self, value: impl Into<String>) -> Self {
        self.value = Some(value.into()).filter(|value| !value.is_empty());
        self
    }

    pub(super) fn look(mut self, look: Look) -> Self {
        self.look = look;
        self
    }

    pub(super) fn absorbs(mut self) -> Self {
        self.touch = Touch::Absorb;
        self
    }

    pub(super) fn acts(mut self, action: Action) -> Self {
        self.touch = Touch::Act(action);
        self
    }

    pub(super) fn is_visible(&self) -> bool {
        !geometry::is_empty(self.visible)
    }
}

/// The elements of a screen, parents before children and the ones behind
/// before those in front. The first is the root.
#[derive(Debug, Clone)]
pub(super) struct Elements(Vec<Element>);

/// Names an element that was added, as the parent of others.
#[derive(Debug, Clone, Copy)]
pub(super) struct Parent {
    index: usize,
    /// What its children are cut to.
    clip: Rect,
}

impl Elements {
    pub(super) fn with_root(mut root: Element) -> (Self, Parent) {
        let clip = root.rect;
        root.visible = clip;
        (Self(vec![root]), Parent { index: 0, clip })
    }

    /// Adds a child that may reach beyond its parent.
    pub(super) fn add(&mut self, parent: Parent, mut element: Element) -> Parent {
        element.visible = geometry::intersection(element.rect, parent.clip);
        element.parent = Some(parent.index);
        self.0.push(element);
        Parent {
            index: self.0.len() - 1,
            clip: parent.clip,
        }
    }

    /// Adds a child whose own children are cut to what is seen of it.
    pub(super) fn add_clipping(&mut self, parent: Parent, element: Element) -> Parent {
        let clip = geometry::intersection(element.rect, parent.clip);
        Parent {
            clip,
            ..self.add(parent, element)
        }
    }

    pub(super) fn as_slice(&self) -> &[Element] {
        &self.0
    }
}
