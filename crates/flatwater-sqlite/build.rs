//! Reads the `LIBSQLITE3_FLAGS` that also steer how SQLite is compiled and turns the ones we can profit from into
//! `cfg`s. Without the variable every such `cfg` is off and the portable code is compiled.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=LIBSQLITE3_FLAGS");
    println!("cargo::rustc-check-cfg=cfg(sqlite_preupdate, sqlite_snapshot)");
    let flags = std::env::var("LIBSQLITE3_FLAGS").unwrap_or_default();
    for word in flags.split_whitespace() {
        let name = word.strip_prefix("-D").unwrap_or(word);
        match name.split('=').next().unwrap_or(name) {
            "SQLITE_ENABLE_PREUPDATE_HOOK" => println!("cargo::rustc-cfg=sqlite_preupdate"),
            "SQLITE_ENABLE_SNAPSHOT" => println!("cargo::rustc-cfg=sqlite_snapshot"),
            _ => {}
        }
    }
}
