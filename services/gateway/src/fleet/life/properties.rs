//! Whatever happens, in whatever order: what always holds.
