//! Compiles SQLite once more, as a shared library that binds its own symbols and nobody else's.

use std::path::PathBuf;

fn main() {
    let variable = |name: &str| std::env::var(name).unwrap_or_else(|_| panic!("{name} is not set"));
    println!("cargo::rerun-if-changed=build.rs");
    if variable("CARGO_CFG_TARGET_OS") != "linux" {
        return println!("cargo::rustc-env=SECOND_SQLITE=");
    }
    // With the feature `sqlcipher` it is SQLCipher's source, which without its flags is SQLite too.
    let folder = PathBuf::from(variable("DEP_SQLITE3_INCLUDE"));
    let sources = ["sqlite3.c", "sqlcipher.c"].map(|name| folder.join(name));
    let source = sources.into_iter().find(|source| source.exists()).expect("the source of SQLite is there");
    let library = PathBuf::from(variable("OUT_DIR")).join("libsecond-sqlite.so");
    let mut compile = cc::Build::new().opt_level(1).pic(true).warnings(false).get_compiler().to_command();
    compile.args(["-shared", "-w", "-Wl,-Bsymbolic", "-DSQLITE_THREADSAFE=1", "-o"]).arg(&library).arg(&source);
    let status = compile.status().unwrap_or_else(|error| panic!("{compile:?}: {error}"));
    assert!(status.success(), "{compile:?}: {status}");
    println!("cargo::rerun-if-changed={}", source.display());
    println!("cargo::rustc-env=SECOND_SQLITE={}", library.display());
}
