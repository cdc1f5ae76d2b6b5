//! Leases of phones: who may drive which, who is next, and why one waits.
