//! Who calls: tokens, certificates, JWTs, roles, and the discovery records of local gateways.
