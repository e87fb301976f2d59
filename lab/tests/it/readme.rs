//! The README's chart, and the tables of the page of speed.

use std::path::Path;

use flatwater_lab::commands::readme::{named_in, rewritten, with_chart, with_others};
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
fn quick_partial_and_dirty_results_make_no_table_and_no_chart() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(folder.path().join("lab/results")).unwrap();
    for flag in ["quick", "partial", "dirty"] {
        let mut result = measured();
        result[flag] = json!(true);
        write(folder.path(), "x.json", &result);
        assert!(rewritten(PAGE, folder.path(), "x.json").is_err(), "{flag}");
        write(folder.path(), "lab/results/speed.json", &result);
        assert!(with_chart(CHART, folder.path()).is_err(), "{flag}");
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
    let (written, images) = with_chart(&readme, root).unwrap();
    assert_eq!(written, readme);
    assert_eq!(images.len(), 2, "for light and for dark pages");
    for (path, image) in images {
        assert_eq!(std::fs::read_to_string(&path).unwrap(), image, "{}", path.display());
    }
}

const CHART: &str = "before\n<!-- lab:chart -->\nold\n<!-- /lab:chart -->\nafter\n";

#[test]
fn the_chart_has_the_languages_that_were_measured_and_every_bar_is_a_time() {
    let folder = tempfile::tempdir().unwrap();
    let rust = result("one", 5, &[("point_query", "sqlx", 40.0), ("point_query", "flatwater", 2.0)]);
    std::fs::create_dir_all(folder.path().join("lab/results")).unwrap();
    write(folder.path(), "lab/results/speed.json", &rust);
    let (page, images) = with_chart(CHART, folder.path()).unwrap();
    assert!(page.contains("Rust: one read by key: sqlx 40 us, Flatwater 2.0 us\""), "{page}");
    assert!(!page.contains("Python"), "{page}");
    let node = result(
        "two",
        5,
        &[
            ("one_row", "node-flatwater", 2.0),
            ("insert_at_once_100", "node-flatwater", 5.0),
            ("loop_hold", "node-better-sqlite3", 9.0),
        ],
    );
    write(folder.path(), "lab/results/node.json", &node);
    let (page, more) = with_chart(&page, folder.path()).unwrap();
    // Its rate is 200,000 a second. A lane without a bar of ours is none.
    assert!(
        page.contains("Node: one read by key: Flatwater 2.0 us; 100 inserts at once: Flatwater 500 us\""),
        "{page}"
    );
    for ((path, before), (_, after)) in images.iter().zip(&more) {
        assert_ne!(before, after, "{}", path.display());
        let (bars, ours) = (after.matches("<rect").count(), after.matches(">Flatwater<").count());
        assert_eq!((bars, ours), (4, 3), "{}", path.display());
    }
    assert_ne!(more[0].1, more[1].1, "light and dark differ");
}

#[test]
fn the_longest_bar_of_a_lane_has_all_the_room_and_the_others_their_share() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(folder.path().join("lab/results")).unwrap();
    let rust = result("one", 1, &[("point_query", "sqlx", 40.0), ("point_query", "flatwater", 10.0)]);
    write(folder.path(), "lab/results/speed.json", &rust);
    let (_, images) = with_chart(CHART, folder.path()).unwrap();
    let widths = images[0].1.split("<rect ").skip(1).map(|bar| {
        let (_, rest) = bar.split_once("width=\"").unwrap();
        rest.split_once('"').unwrap().0.parse::<f64>().unwrap()
    });
    let widths: Vec<f64> = widths.collect();
    assert!((widths[0] / widths[1] - 4.0).abs() < 0.1, "{widths:?}");
}
