//! Who asked for a command and by what right, for the record.
//!
//! The session puts it on record as it is and decides nothing by it: whether a
//! command may be sent is said by its [`Leave`](crate::Leave).

/// Who asked for a command.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Origin {
    /// Where the call came from.
    pub address: Option<String>,
    /// Who called.
    pub principal: Option<String>,
    /// The lease that it names.
    pub lease: Option<LeaseStamp>,
}

/// A lease at one of its grants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseStamp {
    /// Which lease.
    pub id: String,
    /// Which grant.
    pub epoch: u64,
}
