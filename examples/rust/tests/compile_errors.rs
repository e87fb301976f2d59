//! The page of compile errors: each program on it fails to compile, with the message on the page.
//!
//! The programs and the compiler's whole messages are in the folder beside this file. After a change of the toolchain
//! or of a signature, run this with TRYBUILD=overwrite, read what changed, and bring the page up to date. Leaves out: the
//! cures on the page, which are documentation tests.

use std::fs;
use std::path::{Path, PathBuf};

const PAGE: &str = include_str!("../../../docs/guide/compile-errors.md");

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/compile_errors")
}

/// Returns the first code block of that kind.
fn block<'a>(section: &'a str, kind: &str) -> &'a str {
    let (_, rest) = section.split_once(&format!("```{kind}\n")).unwrap_or_else(|| panic!("no {kind} in {section}"));
    rest.split_once("```").expect("the block ends").0
}

#[test]
fn every_mistake_on_the_page_fails_with_the_message_on_the_page() {
    let (mut programs, compiled) = (0, trybuild::TestCases::new());
    for section in PAGE.split("\n## ").skip(1) {
        let name = section.lines().next().unwrap_or_default().to_lowercase().replace(' ', "_");
        let read = |ending| {
            let path = folder().join(format!("{name}.{ending}"));
            fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
        };
        assert_eq!(read("rs"), format!("{}\nfn main() {{}}\n", block(section, "rust,compile_fail")), "{name}");
        let message = read("stderr");
        let is_overwritten = std::env::var_os("TRYBUILD").is_some();
        for line in block(section, "text").lines().filter(|line| !line.is_empty()) {
            assert!(
                is_overwritten || message.lines().any(|said| said == line),
                "{name}: the compiler does not say {line:?}"
            );
        }
        compiled.compile_fail(format!("tests/compile_errors/{name}.rs"));
        programs += 1;
    }
    let files = fs::read_dir(folder()).expect("the folder can be read").count();
    assert_eq!(files, 2 * programs, "each program of the folder is on the page");
}
