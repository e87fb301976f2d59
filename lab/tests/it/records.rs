//! `experiment`.

use std::path::{Path, PathBuf};
use std::process::Output;

use flatwater_lab::records::aggregates::Aggregates;
use flatwater_lab::verdicts::verdict::Verdict;
use serde_json::{Value, json};

use crate::committed::follows;
use crate::support::{lab, result, text, write};

fn experiment(folder: &Path, arguments: &[&str]) -> Output {
    lab(&["experiment"]).args(arguments).arg("--experiments-dir").arg(folder).output().unwrap()
}

/// A new draft with every mark filled in.
fn draft(folder: &Path, title: &str, status: &str) -> PathBuf {
    let output = experiment(folder, &["new", title]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let path = PathBuf::from(text(&output.stdout).trim());
    let mut filled = String::new();
    for line in std::fs::read_to_string(&path).unwrap().lines() {
        let line = match line {
            "- Status: In review" => format!("- Status: {status}"),
            line if line.starts_with("- Decided:") => "- Decided: 2999-01-01".to_owned(),
            line if line.starts_with("- Lanes:") => "- Lanes: a".to_owned(),
            line if line.starts_with("- Control lanes:") => "- Control lanes: none".to_owned(),
            line if line.starts_with("<!-- Accepted or rejected") => {
                format!("{status}, because the lane says so.")
            }
            line if line.starts_with("<!--") => "What there is to say.".to_owned(),
            line => line.to_owned(),
        };
        filled += &(line + "\n");
    }
    std::fs::write(&path, filled).unwrap();
    path
}

/// An `ab` in which lane `a` got better or worse.
fn ab(folder: &Path, candidate: f64) -> String {
    let medians = [("noop_execute", 2.0, 2.0), ("a", 50.0, candidate)];
    let sides: Vec<_> =
        medians.iter().flat_map(|(lane, base, other)| [(*lane, "base", *base), (*lane, "candidate", *other)]).collect();
    let mut result = result("one", 5, &sides);
    result["kind"] = json!("ab");
    result["paces"] = json!({"a": {"of": "flat_out", "share": 0.5, "floor_per_second": 24_000.0}});
    let version = json!({"version": "x", "sqlite": "3", "compile_options": ["THREADSAFE=1"], "language": "rust"});
    result["versions"] = json!({"base": version, "candidate": version});
    write(folder, "ab.json", &result)
}

fn finalize(folder: &Path, draft: &Path, arguments: &[&str]) -> Output {
    let draft = draft.to_string_lossy();
    experiment(folder, &[&["finalize", &draft], arguments].concat())
}

fn index(folder: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(folder.join("index.json")).unwrap()).unwrap()
}

#[test]
fn a_record_gets_the_next_number_its_figures_and_a_line_in_the_index() {
    let folder = tempfile::tempdir().unwrap();
    let better = ab(folder.path(), 30.0);
    for (title, number) in [("First: try", "001-first-try"), ("Second try", "002-second-try")] {
        let draft = draft(folder.path(), title, "Accepted");
        let output = finalize(folder.path(), &draft, &["--result", &better]);
        assert!(output.status.success(), "{}", text(&output.stderr));
        assert!(!draft.exists());
        assert!(folder.path().join(format!("{number}.md")).is_file());
        let kept = std::fs::read_to_string(folder.path().join(format!("{number}.json"))).unwrap();
        let aggregates = Aggregates::parse(&kept).unwrap();
        let medians: Vec<(&str, &str)> = aggregates.medians.iter().map(|row| (&*row.lane, &*row.side)).collect();
        assert_eq!(medians, [("a", "base"), ("a", "candidate")], "only the record's lanes are kept");
        assert_eq!(aggregates.medians[1].figures["p50_us"], 30.0);
        let judged = aggregates.judgements.iter().filter(|judged| judged.lane == "a");
        assert!(judged.clone().count() > 5 && judged.into_iter().all(|judged| judged.runs.len() == 5));
        assert_eq!(aggregates.lanes[1].verdict, Verdict::Accepted);
        follows(&aggregates, number);
        assert_eq!(aggregates.circumstances.paces["a"].per_second(), 12_000.0);
        assert_eq!(aggregates.text().unwrap(), kept);
        let options = kept.matches("THREADSAFE=1").count();
        assert_eq!(
            (options, &*aggregates.compile_options[0].sides),
            (1, &["base".to_owned(), "candidate".to_owned()][..])
        );
    }
    let index = index(folder.path());
    assert_eq!((&index[0]["number"], &index[1]["number"]), (&json!(1), &json!(2)));
    assert_eq!(index[1]["status"], "accepted");
    assert_eq!(index[1]["decided"], "2999-01-01");
    assert_eq!(index[1]["decision"], "Accepted, because the lane says so.");
    assert!(index[1].get("patch").is_none());
}

#[test]
fn a_rejected_change_is_kept_as_a_patch() {
    let folder = tempfile::tempdir().unwrap();
    let worse = ab(folder.path(), 70.0);
    let patch = folder.path().join("change.patch");
    std::fs::write(&patch, "--- a\n+++ b\n").unwrap();
    let draft = draft(folder.path(), "No good", "Rejected");
    let patch = patch.to_string_lossy();
    let output = finalize(folder.path(), &draft, &["--result", &worse, "--patch", &patch]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(std::fs::read_to_string(folder.path().join("001-no-good.patch")).unwrap(), "--- a\n+++ b\n");
    assert_eq!(index(folder.path())[0]["patch"], "001-no-good.patch");
}

#[test]
fn a_record_that_its_figures_do_not_bear_is_refused_and_nothing_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let draft = draft(folder.path(), "Wishful", "Accepted");
    let mut quick = result("one", 5, &[("a", "base", 50.0), ("a", "candidate", 30.0)]);
    quick["quick"] = json!(true);
    let quick = write(folder.path(), "quick.json", &quick);
    let other = write(folder.path(), "other.json", &result("one", 5, &[("b", "raw", 1.0)]));
    let worse = ab(folder.path(), 70.0);
    let same = write(
        folder.path(),
        "same.json",
        &serde_json::from_str(&std::fs::read_to_string(ab(folder.path(), 50.0)).unwrap()).unwrap(),
    );
    let worse_again = ab(folder.path(), 70.0);
    assert_eq!(worse, worse_again);
    let table = [
        (worse, "the record says accepted, but a: "),
        (same, "accepts none of its lanes"),
        (quick, "the result is quick"),
        (other, "names lane `a`"),
    ];
    for (result, expected) in table {
        let output = finalize(folder.path(), &draft, &["--result", &result]);
        assert!(!output.status.success());
        assert!(text(&output.stderr).contains(expected), "{expected}: {}", text(&output.stderr));
    }
    assert!(draft.exists() && !folder.path().join("index.json").exists());
    assert!(!folder.path().join("001-wishful.json").exists());
}

#[test]
fn a_draft_is_not_overwritten_and_an_unfinished_one_not_taken() {
    let folder = tempfile::tempdir().unwrap();
    let output = experiment(folder.path(), &["new", "Same words"]);
    let draft = PathBuf::from(text(&output.stdout).trim());
    let again = experiment(folder.path(), &["new", "same   WORDS"]);
    assert!(!again.status.success() && text(&again.stderr).contains("is there already"));
    let better = ab(folder.path(), 30.0);
    let output = finalize(folder.path(), &draft, &["--result", &better]);
    assert!(text(&output.stderr).contains("section `Problem` is empty"), "{}", text(&output.stderr));
}
