//! What server reflection serves: the package as a client without the source
//! sees it.

use std::collections::BTreeSet;

use fleetgate_proto::FILE_DESCRIPTOR_SET;
use prost::Message;
use prost_types::{FileDescriptorProto, FileDescriptorSet};

fn descriptors() -> FileDescriptorSet {
    FileDescriptorSet::decode(FILE_DESCRIPTOR_SET).expect("the build writes what prost reads")
}

#[test]
fn every_service_of_the_package_can_be_found() {
    let services: BTreeSet<String> = descriptors()
        .file
        .iter()
        .filter(|file| file.package() == "fleetgate.v1")
        .flat_map(|file| &file.service)
        .map(|service| service.name().to_owned())
        .collect();

    assert_eq!(
        services,
        BTreeSet::from(
            [
                "AutomationService",
                "FleetService",
                "LeaseService",
                "LedgerService"
            ]
            .map(str::to_owned)
        )
    );
}

#[test]
fn every_import_is_in_the_set() {
    let set = descriptors();
    let held: BTreeSet<&str> = set.file.iter().map(FileDescriptorProto::name).collect();
    let imported: BTreeSet<&str> = set
        .file
        .iter()
        .flat_map(|file| &file.dependency)
        .map(String::as_str)
        .collect();

    assert!(imported.contains("google/protobuf/duration.proto"));
    assert!(
        imported.is_subset(&held),
        "missing: {:?}",
        imported.difference(&held)
    );
}

#[test]
fn the_comments_of_the_source_come_along() {
    let set = descriptors();
    let file = set
        .file
        .iter()
        .find(|file| file.name() == "fleetgate/v1/automation.proto")
        .expect("the file is in the set");
    let comments = file
        .source_code_info
        .as_ref()
        .expect("the file has its source information");

    assert!(
        comments
            .location
            .iter()
            .any(|at| at.leading_comments().contains("drives one phone"))
    );
}
