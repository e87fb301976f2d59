//! Compiles SQLite once more, as a shared library that binds its own symbols and nobody else's.

use std::path::PathBuf;

fn main() {
    let variable = |name: &str| std::env::var(name).unwrap_or_else(|_| panic!("{name} is not set"));
    println!("cargo::rerun-if-changed=build.rs");
    if variable("CARGO_CFG_TARGET_OS") != "linux" {
        return println!("cargo::rustc-env=SECOND_SQLITE=");
    }
    let source = PathBuf::from(variable("DEP_SQLITE3_INCLUDE")).join("sqlite3.c");
    let library = PathBuf::from(variable("OUT_DIR")).join("libsecond-sqlite.so");
    let mut compile = cc::Build::new().opt_level(1).pic(true).warnings(false).get_compiler().to_command();
    compile.args(["-shared", "-w", "-Wl,-Bsymbolic", "-DSQLITE_THREADSAFE=1", "-o"]).arg(&library).arg(&source);
    let status = compile.status().unwrap_or_else(|error| panic!("{compile:?}: {error}"));
    assert!(status.success(), "{compile:?}: {status}");
    println!("cargo::rerun-if-changed={}", source.display());
    println!("cargo::rustc-env=SECOND_SQLITE={}", library.display());
}
