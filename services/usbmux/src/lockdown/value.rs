//! What a phone tells: its name is its owner's, its numbers identify it, so a
//! value that is formatted shows its type and no content.

use std::collections::BTreeMap;
use std::fmt;

use plist::Value as Plist;

/// One value, or all of a domain.
#[derive(Clone, PartialEq, Eq)]
pub enum Value {
    /// A text.
    Text(String),
    /// A whole number.
    Integer(i64),
    /// Yes or no.
    Boolean(bool),
    /// All values of a domain that are of these types.
    Table(BTreeMap<String, Value>),
}

impl Value {
    /// The text, if it is one.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Integer(_) | Self::Boolean(_) | Self::Table(_) => None,
        }
    }

    /// Takes a value, or nothing if it is of another type.
    pub(crate) fn read(value: &Plist) -> Option<Self> {
        if let Some(text) = value.as_string() {
            Some(Self::Text(text.to_owned()))
        } else if let Some(number) = value.as_signed_integer() {
            Some(Self::Integer(number))
        } else if let Some(flag) = value.as_boolean() {
            Some(Self::Boolean(flag))
        } else {
            let table = value.as_dictionary()?.iter();
            let known = table.filter_map(|(key, value)| Some((key.clone(), Self::read(value)?)));
            Some(Self::Table(known.collect()))
        }
    }

    pub(crate) fn write(&self) -> Plist {
        match self {
            Self::Text(text) => text.as_str().into(),
            Self::Integer(number) => (*number).into(),
            Self::Boolean(flag) => (*flag).into(),
            Self::Table(table) => {
                let table = table
                    .iter()
                    .map(|(key, value)| (key.clone(), value.write()));
                Plist::Dictionary(table.collect())
            }
        }
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => write!(f, "Text({} bytes)", text.len()),
            Self::Integer(_) => f.write_str("Integer"),
            Self::Boolean(_) => f.write_str("Boolean"),
            Self::Table(table) => write!(f, "Table({} values)", table.len()),
        }
    }
}
