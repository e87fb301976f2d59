//! Turns on what the sources of the kernel have for this crate: the features beside them are absent.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-cfg=flatwater_kernel");
}
