//! The API's messages as people and programs read them.
//!
//! One type per message, which is both the JSON document and the source of the
//! text; its keys are stable.

pub(crate) mod event;
pub(crate) mod receipt;
pub(crate) mod record;
pub(crate) mod tree;
