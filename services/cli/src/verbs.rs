//! The verbs that ask a gateway, or look at its files, one a file.

pub(crate) mod command;
pub(crate) mod cordon;
pub(crate) mod describe;
pub(crate) mod device;
pub(crate) mod devices;
pub(crate) mod drain;
pub(crate) mod history;
pub(crate) mod instances;
pub(crate) mod lease;
pub(crate) mod ledger;
pub(crate) mod operations;
pub(crate) mod recycle;
pub(crate) mod screenshot;
pub(crate) mod tap;
pub(crate) mod token;
pub(crate) mod tree;
pub(crate) mod type_text;
