//! What the compiler says about texts, values and types that do not fit.
//!
//! The texts are those of the compiler in rust-toolchain.toml. After a change of either, `TRYBUILD=overwrite` writes them anew.

use std::path::Path;

#[test]
fn what_does_not_fit_is_refused_at_its_place_with_what_to_do() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    // The programs are compiled in a folder of their own, where their schema is looked for.
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap().join("tests/trybuild/flatwater-macros");
    std::fs::create_dir_all(&folder).unwrap();
    let schema = format!("migrations = {:?}\n", root.join("migrations"));
    std::fs::write(folder.join("flatwater.toml"), schema).unwrap();
    let tests = trybuild::TestCases::new();
    tests.compile_fail("tests/refused/*.rs");
}
