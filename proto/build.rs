//! Generates the Rust code of `fleetgate.v1`.
//!
//! protox compiles the `.proto` files in process, so that a build needs no
//! protoc. The descriptors that come out are also kept as bytes, for server
//! reflection.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::{env, fs};

use prost::Message;

const FILES: [&str; 6] = [
    "fleetgate/v1/automation.proto",
    "fleetgate/v1/command.proto",
    "fleetgate/v1/device.proto",
    "fleetgate/v1/fleet.proto",
    "fleetgate/v1/lease.proto",
    "fleetgate/v1/ledger.proto",
];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=fleetgate");
    let root = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?);
    let out = PathBuf::from(env::var("OUT_DIR")?);

    // The comments in the source are what rustdoc and reflection show.
    let descriptors = protox::Compiler::new([&root])?
        .include_source_info(true)
        .include_imports(true)
        .open_files(FILES)?
        .file_descriptor_set();
    write(&out.join("fleetgate.bin"), &descriptors.encode_to_vec())?;

    tonic_prost_build::configure()
        .build_client(env::var_os("CARGO_FEATURE_CLIENT").is_some())
        .build_server(env::var_os("CARGO_FEATURE_SERVER").is_some())
        // What these hold may not be formatted: src/redact.rs does it instead.
        .skip_debug([
            ".fleetgate.v1.TypeTextRequest",
            ".fleetgate.v1.CaptureScreenshotResponse",
        ])
        // Pieces of one picture share its memory.
        .bytes(".fleetgate.v1.CaptureScreenshotResponse.chunk")
        .compile_fds(descriptors)?;
    Ok(())
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), Box<dyn Error>> {
    fs::write(path, bytes)
        .map_err(|error| format!("cannot write {}: {error}", path.display()).into())
}
