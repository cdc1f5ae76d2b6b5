//! The names of the commands, and what is true of each by its name alone.
//!
//! Every answer is an exhaustive match: a new command does not compile before
//! it is known whether it may be sent twice.

use crate::budget::CommandClass;
use crate::words::closed_words;

closed_words! {
    /// The name of a command. `CommandStatus` travels as `status`.
    pub enum CommandKind {
        /// Reads an app's frame.
        Viewport = "viewport",
        /// Taps a point of an app.
        Tap = "tap",
        /// Presses a point and holds it.
        LongPress = "longPress",
        /// Presses, moves and lifts.
        Drag = "drag",
        /// Types text into the focused input.
        Type = "type",
        /// Presses the submit key.
        KeyboardReturn = "keyboardReturn",
        /// Deletes one character.
        KeyboardDelete = "keyboardDelete",
        /// Reads an app's accessibility tree.
        Snapshot = "snapshot",
        /// Presses a hardware button.
        Button = "button",
        /// Takes a picture of the screen.
        Screenshot = "screenshot",
        /// Reads the runner's health.
        Status = "status",
        /// Looks an id up in the runner's journal.
        CommandStatus = "commandStatus",
        /// Ends the runner's session.
        Shutdown = "shutdown",
    }
}

impl CommandKind {
    /// True if it changes the device by intent, so that it may be sent once
    /// only and needs a durable record before its first byte.
    pub fn is_mutation(self) -> bool {
        match self {
            Self::Tap
            | Self::LongPress
            | Self::Drag
            | Self::Type
            | Self::KeyboardReturn
            | Self::KeyboardDelete
            | Self::Button
            | Self::Shutdown => true,
            Self::Viewport
            | Self::Snapshot
            | Self::Screenshot
            | Self::Status
            | Self::CommandStatus => false,
        }
    }

    /// True if what is on the screen may be something else afterwards: by
    /// intent, or because a backgrounded app was brought to the front for it.
    pub fn may_change_screen(self) -> bool {
        self.is_mutation() || matches!(self, Self::Viewport)
    }

    /// True if the runner answers it outside its serial queue and does not
    /// journal it, so that it need not wait for the device's turn.
    pub fn bypasses_queue(self) -> bool {
        match self {
            Self::Status | Self::CommandStatus => true,
            Self::Viewport
            | Self::Tap
            | Self::LongPress
            | Self::Drag
            | Self::Type
            | Self::KeyboardReturn
            | Self::KeyboardDelete
            | Self::Snapshot
            | Self::Button
            | Self::Screenshot
            | Self::Shutdown => false,
        }
    }

    /// True if the runner keeps its reply for the journal, size permitting.
    pub fn retains_response(self) -> bool {
        match self {
            Self::Snapshot | Self::Screenshot => false,
            Self::Viewport
            | Self::Tap
            | Self::LongPress
            | Self::Drag
            | Self::Type
            | Self::KeyboardReturn
            | Self::KeyboardDelete
            | Self::Button
            | Self::Status
            | Self::CommandStatus
            | Self::Shutdown => true,
        }
    }

    /// Which budget it runs under.
    pub fn class(self) -> CommandClass {
        match self {
            Self::Type => CommandClass::Type,
            Self::Tap | Self::LongPress | Self::Drag => CommandClass::Gesture,
            Self::Snapshot => CommandClass::Snapshot,
            Self::Viewport
            | Self::KeyboardReturn
            | Self::KeyboardDelete
            | Self::Button
            | Self::Screenshot
            | Self::Status
            | Self::CommandStatus
            | Self::Shutdown => CommandClass::Other,
        }
    }
}
