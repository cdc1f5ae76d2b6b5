//! Who may call what: every method of this server, and what it takes.
//!
//! The row is what is asked before a handler hears of a call. Where it says
//! [`Rule::Somewhere`], the handler asks again once it knows which phone is
//! meant ([`Access::check`](super::Access::check)), or tells of those phones only
//! that its caller may see; the column behind the row says what it asks for.
//!
//! Invariant: a method without a row is not served. A test walks the descriptors
//! of all that is served and fails for a row too few or too many.

use fleetgate_identity::Role;
use fleetgate_identity::Role::{Admin, Operator, Viewer};

use Rule::{AnyPrincipal, Fleet, Open, Somewhere};

/// What a method takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// Nothing: nobody is asked who they are.
    Open,
    /// That the caller is known.
    AnyPrincipal,
    /// A role on some phone at least; the handler looks at which.
    Somewhere(Role),
    /// A role on the whole fleet.
    Fleet(Role),
}

impl Rule {
    /// The role that it takes, if it takes one.
    pub fn role(self) -> Option<Role> {
        match self {
            Self::Open | Self::AnyPrincipal => None,
            Self::Somewhere(role) | Self::Fleet(role) => Some(role),
        }
    }
}

/// A method and what it takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    /// Its path, as HTTP has it.
    pub path: &'static str,
    /// What it takes.
    pub rule: Rule,
}

const fn row(path: &'static str, rule: Rule) -> Row {
    Row { path, rule }
}

/// Every method, in the order of the paths.
#[rustfmt::skip]
pub const TABLE: &[Row] = &[
    row("/fleetgate.v1.AutomationService/CaptureScreenshot",       Somewhere(Viewer)),   // the same on the phone
    row("/fleetgate.v1.AutomationService/CaptureSnapshot",         Somewhere(Viewer)),   // the same on the phone
    row("/fleetgate.v1.AutomationService/Drag",                    Somewhere(Operator)), // the same on the phone
    row("/fleetgate.v1.AutomationService/GetRunnerCommandStatus",  Somewhere(Viewer)),   // the same on the phone
    row("/fleetgate.v1.AutomationService/GetRunnerStatus",         Somewhere(Viewer)),   // the same on the phone
    row("/fleetgate.v1.AutomationService/GetViewport",             Somewhere(Operator)), // the same on the phone
    row("/fleetgate.v1.AutomationService/LongPress",               Somewhere(Operator)), // the same on the phone
    row("/fleetgate.v1.AutomationService/PressButton",             Somewhere(Operator)), // the same on the phone
    row("/fleetgate.v1.AutomationService/PressKeyboardDelete",     Somewhere(Operator)), // the same on the phone
    row("/fleetgate.v1.AutomationService/PressKeyboardReturn",     Somewhere(Operator)), // the same on the phone
    row("/fleetgate.v1.AutomationService/ShutdownRunner",          Somewhere(Operator)), // the same on the phone
    row("/fleetgate.v1.AutomationService/Tap",                     Somewhere(Operator)), // the same on the phone
    row("/fleetgate.v1.AutomationService/TypeText",                Somewhere(Operator)), // the same on the phone
    row("/fleetgate.v1.FleetService/CordonDevice",                 Somewhere(Operator)), // the same on the phone
    row("/fleetgate.v1.FleetService/DrainGateway",                 Fleet(Admin)),
    row("/fleetgate.v1.FleetService/GetDevice",                    Somewhere(Viewer)),   // the same on the phone
    row("/fleetgate.v1.FleetService/GetGateway",                   Somewhere(Viewer)),   // tells of no phone
    row("/fleetgate.v1.FleetService/ListDeviceTransitions",        Somewhere(Viewer)),   // the same on the phone
    row("/fleetgate.v1.FleetService/ListDevices",                  Somewhere(Viewer)),   // tells of such phones
    row("/fleetgate.v1.FleetService/RecycleRunner",                Somewhere(Operator)), // the same on the phone; an admin where another has leased it
    row("/fleetgate.v1.FleetService/UncordonDevice",               Somewhere(Operator)), // the same on the phone
    row("/fleetgate.v1.FleetService/UpdateDevice",                 Somewhere(Admin)),    // the same on the phone: labels say who may do what
    row("/fleetgate.v1.FleetService/WatchFleet",                   Somewhere(Viewer)),   // tells of such phones
    row("/fleetgate.v1.LeaseService/CreateLease",                  Somewhere(Operator)), // the same on each phone
    row("/fleetgate.v1.LeaseService/ExplainLease",                 Somewhere(Viewer)),   // tells of such phones
    row("/fleetgate.v1.LeaseService/GetLease",                     Somewhere(Viewer)),   // tells of such phones
    row("/fleetgate.v1.LeaseService/KeepAlive",                    Somewhere(Operator)), // its owner's only
    row("/fleetgate.v1.LeaseService/ListLeases",                   Somewhere(Viewer)),   // tells of such phones
    row("/fleetgate.v1.LeaseService/ReleaseLease",                 Somewhere(Operator)), // its owner's only
    row("/fleetgate.v1.LeaseService/RenewLease",                   Somewhere(Operator)), // its owner's only
    row("/fleetgate.v1.LeaseService/RevokeLease",                  Somewhere(Admin)),    // the same on each of its phones
    row("/fleetgate.v1.LeaseService/UpdateLease",                  Somewhere(Operator)), // its owner's only
    row("/fleetgate.v1.LeaseService/WatchLease",                   Somewhere(Viewer)),   // tells of such phones
    row("/fleetgate.v1.LedgerService/GetCommand",                  Somewhere(Viewer)),   // the same on the phone
    row("/fleetgate.v1.LedgerService/ListCommands",                Somewhere(Viewer)),   // tells of such phones
    row("/fleetgate.v1.LedgerService/ListOperations",              Fleet(Operator)),     // tells of everybody
    row("/fleetgate.v1.LedgerService/TailCommands",                Somewhere(Viewer)),   // tells of such phones
    row("/grpc.health.v1.Health/Check",                            Open),
    row("/grpc.health.v1.Health/Watch",                            Open),
    row("/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",      AnyPrincipal),
    row("/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", AnyPrincipal),
];

/// The row of a method, if there is one.
pub(crate) fn find(path: &str) -> Option<Row> {
    let at = TABLE.binary_search_by(|row| row.path.cmp(path)).ok()?;
    TABLE.get(at).copied()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use prost::Message;
    use prost_types::FileDescriptorSet;

    use super::*;

    /// The paths of all methods that a set of descriptors has.
    fn methods(descriptors: &[u8]) -> Vec<String> {
        let set = FileDescriptorSet::decode(descriptors).unwrap();
        let mut methods = Vec::new();
        for file in &set.file {
            for service in &file.service {
                for method in &service.method {
                    methods.push(format!(
                        "/{}.{}/{}",
                        file.package(),
                        service.name(),
                        method.name()
                    ));
                }
            }
        }
        methods
    }

    #[test]
    fn every_method_has_one_row_and_no_row_is_without_its_method() {
        let served = [
            fleetgate_proto::FILE_DESCRIPTOR_SET,
            tonic_health::pb::FILE_DESCRIPTOR_SET,
            tonic_reflection::pb::v1::FILE_DESCRIPTOR_SET,
            tonic_reflection::pb::v1alpha::FILE_DESCRIPTOR_SET,
        ];
        let served: BTreeSet<_> = served.into_iter().flat_map(methods).collect();
        let rows: BTreeSet<_> = TABLE.iter().map(|row| row.path.to_owned()).collect();
        let without_row: Vec<_> = served.difference(&rows).collect();
        let without_method: Vec<_> = rows.difference(&served).collect();
        assert_eq!((without_row, without_method), (vec![], vec![]));
    }

    #[test]
    fn the_rows_are_in_order_and_each_is_found() {
        assert!(TABLE.is_sorted_by(|one, next| one.path < next.path));
        for row in TABLE {
            assert_eq!(find(row.path), Some(*row));
        }
        for path in [
            "",
            "/",
            "/fleetgate.v1.FleetService/",
            "/fleetgate.v1.FleetService/Reboot",
        ] {
            assert_eq!(find(path), None, "{path}");
        }
    }

    #[test]
    fn what_changes_something_takes_more_than_a_viewer() {
        let reads = ["Get", "List", "Watch", "Tail", "Capture", "Explain"];
        for row in TABLE {
            let name = row.path.rsplit('/').next().unwrap();
            let is_read = reads.iter().any(|read| name.starts_with(read));
            // A look at the viewport may bring another app to the front, and
            // what others do is none of a viewer's business.
            let is_read = is_read && !["GetViewport", "ListOperations"].contains(&name);
            match row.rule.role() {
                Some(role) => assert_eq!(role == Viewer, is_read, "{}", row.path),
                None => assert!(row.path.starts_with("/grpc."), "{}", row.path),
            }
        }
    }
}
