//! The API's messages as people and programs read them.
//!
//! One type per message, which is both the JSON document and the source of the
//! text; its keys are stable.

pub(crate) mod described;
pub(crate) mod device;
pub(crate) mod event;
pub(crate) mod fleet;
pub(crate) mod instance;
pub(crate) mod lease;
pub(crate) mod operation;
pub(crate) mod receipt;
pub(crate) mod record;
pub(crate) mod token;
pub(crate) mod transition;
pub(crate) mod tree;
