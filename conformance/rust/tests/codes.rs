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
