//! What the compiler says about wrong uses: of the derive macros, at the attribute or the field, and of the traits.
//!
//! The texts are those of the compiler in rust-toolchain.toml. After a change of either, `TRYBUILD=overwrite` writes
//! them anew.

#[test]
fn wrong_uses_are_refused_at_their_place_with_what_to_do() {
    let tests = trybuild::TestCases::new();
    tests.compile_fail("tests/refused/*.rs");
}
