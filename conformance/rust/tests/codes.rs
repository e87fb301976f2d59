//! The page of the codes of errors is made of the codes.

use std::fmt::Write;
use std::path::Path;

use flatwater::{ErrorCode, ErrorKind};

const BEGIN: &str = "<!-- codes -->\n";

/// The table: a kind, and its codes.
fn table() -> String {
    let mut text = String::new();
    let mut last: Option<ErrorKind> = None;
    for code in ErrorCode::ALL {
        if last.replace(code.kind()) != Some(code.kind()) {
            write!(text, "\n## Kind `{}`\n\n| code | means |\n|---|---|\n", code.kind().name()).expect("a string");
        }
        writeln!(text, "| `{}` | {} |", code.name(), code.explanation()).expect("a string");
    }
    text
}

/// The text of all sources of a folder.
fn sources(folder: &Path) -> String {
    let entries = std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    entries
        .map(|path| match path.is_dir() {
            true => sources(&path),
            false if path.extension().is_some_and(|extension| extension == "rs") => {
                std::fs::read_to_string(path).expect("a source")
            }
            false => String::new(),
        })
        .collect()
}

#[test]
fn each_code_is_that_of_some_error() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let text = ["flatwater", "flatwater-base", "flatwater-sql", "flatwater-remote"]
        .map(|name| sources(&root.join("crates").join(name).join("src")))
        .concat();
    let unused: Vec<_> = ErrorCode::ALL.iter().filter(|code| !text.contains(&format!("ErrorCode::{code:?}"))).collect();
    assert!(unused.is_empty(), "{unused:?}");
}

#[test]
fn the_page_of_codes_lists_all_of_them() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide/error-codes.md");
    let text = std::fs::read_to_string(&page).expect("the page");
    let (before, is) = text.split_once(BEGIN).expect("the page has the mark");
    let expected = table();
    if std::env::var_os("FLATWATER_UPDATE").is_some() {
        std::fs::write(&page, format!("{before}{BEGIN}{expected}")).expect("the page is written");
    } else {
        assert_eq!(is, expected, "run it with FLATWATER_UPDATE=1");
    }
}
