//! Embeds the migrations afresh when one is added: `migrate!` reads a directory
//! that cargo does not watch by itself.

fn main() {
    println!("cargo:rerun-if-changed=../../migrations/sqlite");
}
