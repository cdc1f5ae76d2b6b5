//! The kinds of events that the chain is made of.

use std::fmt;

/// The kind of an event. Its words are part of what is hashed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EventKind {
    /// The ledger's chain begins.
    Opened,
    /// A command is about to be sent.
    Intended,
    /// A command and its fate were recorded at once.
    Recorded,
    /// An intended command has a fate.
    Concluded,
    /// A read of a recorded id ran again.
    Repeated,
    /// A fate was learnt later.
    Resolved,
    /// A command that was on record is bound anew: it outlives the link that
    /// bound it before, or is older than the chain.
    Carried,
    /// Likewise a fate.
    CarriedFate,
    /// Something was done other than by a command.
    Operation,
    /// A phone went through something.
    Transition,
    /// The beginning of the chain was removed.
    Pruned,
}

impl EventKind {
    /// All of them.
    pub const ALL: [Self; 11] = [
        Self::Opened,
        Self::Intended,
        Self::Recorded,
        Self::Concluded,
        Self::Repeated,
        Self::Resolved,
        Self::Carried,
        Self::CarriedFate,
        Self::Operation,
        Self::Transition,
        Self::Pruned,
    ];

    /// Its word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Opened => "opened",
            Self::Intended => "intended",
            Self::Recorded => "recorded",
            Self::Concluded => "concluded",
            Self::Repeated => "repeated",
            Self::Resolved => "resolved",
            Self::Carried => "carried",
            Self::CarriedFate => "carried_fate",
            Self::Operation => "operation",
            Self::Transition => "transition",
            Self::Pruned => "pruned",
        }
    }

    /// What a word stands for, if anything.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == word)
    }
}

impl fmt::Display for EventKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
