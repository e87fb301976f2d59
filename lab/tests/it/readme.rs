//! The README's speed table.

use std::path::Path;

use flatwater_lab::commands::readme::{named_in, rewritten, with_others};
use serde_json::{Value, json};

use crate::support::{lab, result, text, write};

fn measured() -> Value {
    let mut result = result(
        "one",
        5,
        &[
            ("point_query", "raw", 1.0),
            ("point_query", "raw-held", 0.4),
            ("point_query", "flatwater", 0.5),
            ("many_10k", "raw", 5200.0),
            ("many_10k", "flatwater", 5400.0),
            ("insert_concurrent_100", "flatwater", 2.0),
        ],
    );
    result["commit"] = json!("0123456789abcdef");
    result["versions"] = json!({"flatwater": {"sqlite": "3.54.1"}});
    result["lanes"] = json!({"insert_concurrent_100": {"ops_unit": "rows"}});
    result
}

const PAGE: &str = "before\n<!-- lab:speed x.json -->\nold\n<!-- /lab:speed -->\nafter\n";

#[test]
fn the_table_is_generated_between_the_marks_and_names_the_held_floor() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "x.json", &measured());
    let page = rewritten(PAGE, folder.path(), "x.json").unwrap();
    let expected = "before\n<!-- lab:speed x.json -->\n\
        a cpu, 2 cores, 8 GiB, an os, ext4; SQLite 3.54.1; 2020-01-01, commit 0123456789. Medians of 5 runs a side, the sides in turn.\n\
        Ratios carry over to other machines; absolute figures do not.\n\n\
        | | raw | Flatwater | beside `raw` |\n|---|---|---|---|\n\
        | one awaited point query | 1.0 us | 0.5 us | 0.50 of the time; 1.25 of `raw-held` |\n\
        | 100 tasks, small INSERTs, durability normal | - | 500,000 rows/s | - |\n\
        | `execute_many` of 10,000 rows | 5.2 ms | 5.4 ms | 1.04 of the time |\n\
        <!-- /lab:speed -->\nafter\n";
    assert_eq!(page, expected);
    assert_eq!(rewritten(&page, folder.path(), "x.json").unwrap(), page, "writing it again changes nothing");
}

#[test]
fn check_fails_on_a_table_that_was_typed_and_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let file = write(folder.path(), "x.json", &measured());
    let page = folder.path().join("README.md");
    std::fs::write(&page, PAGE).unwrap();
    let call = |arguments: &[&str]| {
        let output = lab(&["readme-table", &file, "--readme"]).arg(&page).args(arguments).output().unwrap();
        (output.status.success(), text(&output.stderr))
    };
    let (ok, said) = call(&["--check"]);
    assert!(!ok && said.contains("is not what"), "{said}");
    assert_eq!(std::fs::read_to_string(&page).unwrap(), PAGE);
    assert_eq!(call(&[]), (true, String::new()));
    assert_eq!(call(&["--check"]), (true, String::new()));
}

#[test]
fn quick_partial_and_dirty_results_make_no_table() {
    let folder = tempfile::tempdir().unwrap();
    for flag in ["quick", "partial", "dirty"] {
        let mut result = measured();
        result[flag] = json!(true);
        write(folder.path(), "x.json", &result);
        assert!(rewritten(PAGE, folder.path(), "x.json").is_err(), "{flag}");
    }
}

#[test]
fn the_pages_have_exactly_the_tables_of_the_results_that_they_name() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let read = |page: &str| std::fs::read_to_string(root.join(page)).unwrap();
    let speed = read("docs/guide/speed.md");
    let written = rewritten(&speed, root, named_in(&speed).unwrap()).unwrap();
    assert_eq!(with_others(&written, root).unwrap(), speed);
    assert!(speed.contains("lab:turns"), "it has the table of turns");
    let readme = read("README.md");
    assert_eq!(with_others(&readme, root).unwrap(), readme);
    assert!(readme.contains("lab:short"), "it has the short table");
}
