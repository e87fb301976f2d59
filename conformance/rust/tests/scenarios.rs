//! All scenarios, and what holds for all of them together.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use flatwater_conformance::format::{File, Scenario};
use flatwater_conformance::{Place, run, run_plain};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Returns every scenario with the name of its file.
fn scenarios() -> Vec<(String, Scenario)> {
    let entries = std::fs::read_dir(folder().join("scenarios")).expect("the folder of the scenarios");
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    let mut all = Vec::new();
    for path in paths {
        let name = path.file_name().expect("a file").to_string_lossy().into_owned();
        let file: File = serde_json::from_str(&read(&path)).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(!file.about.is_empty() && !file.scenarios.is_empty(), "{name} says nothing");
        all.extend(file.scenarios.into_iter().map(|scenario| (name.clone(), scenario)));
    }
    all
}

/// Does `work` for each of `count` numbers, on several threads, and fails with all that went wrong.
fn all_pass(count: usize, work: impl Fn(usize) -> Vec<String> + Sync) {
    let (next, failures) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while let Some(number) = Some(next.fetch_add(1, Ordering::Relaxed)).filter(|number| *number < count) {
                    let failed = work(number);
                    failures.lock().unwrap_or_else(PoisonError::into_inner).extend(failed);
                }
            });
        }
    });
    let mut failures = failures.into_inner().unwrap_or_else(PoisonError::into_inner);
    failures.sort();
    assert!(failures.is_empty(), "{} failures:\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn every_scenario_passes_on_a_file_and_in_memory() {
    let all = scenarios();
    all_pass(all.len(), |number| {
        let (file, scenario) = &all[number];
        if scenario.has_types() {
            return Vec::new();
        }
        let places = [Place::File, Place::Memory].into_iter();
        let places = places.filter(|place| *place == Place::File || scenario.needs_a_file.is_none());
        let failed = places.filter_map(|place| {
            let failed = run(scenario, &place).err()?;
            Some((place, failed))
        });
        failed.map(|(place, failed)| format!("{file}: {} ({place:?}): {failed}", scenario.name)).collect()
    });
}

#[test]
fn plain_sqlite_does_what_plain_scenarios_expect() {
    let all = scenarios();
    let checked = AtomicUsize::new(0);
    all_pass(all.len(), |number| {
        let (file, scenario) = &all[number];
        let Some(ran) = run_plain(scenario) else { return Vec::new() };
        checked.fetch_add(1, Ordering::Relaxed);
        ran.err().map(|failed| format!("{file}: {}: {failed}", scenario.name)).into_iter().collect()
    });
    let checked = checked.into_inner();
    assert!(checked >= 100, "only {checked} scenarios are plain");
}

#[test]
fn there_are_150_scenarios_and_their_names_differ() {
    let all = scenarios();
    assert!(all.len() >= 150, "there are {}", all.len());
    let mut names = BTreeSet::new();
    for (file, scenario) in &all {
        let is_fact = scenario.name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
        assert!(is_fact && scenario.name.contains('_'), "{file}: {}", scenario.name);
        assert!(names.insert(&scenario.name), "{file}: {} is used twice", scenario.name);
        assert!(scenario.needs_a_file.as_ref().is_none_or(|reason| reason.contains(' ')), "{file}: {}", scenario.name);
    }
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Kinds {
    expected: BTreeSet<String>,
    out_of_reach: BTreeMap<String, String>,
}

#[test]
fn every_kind_of_error_is_expected_somewhere_or_out_of_reach_for_a_reason() {
    let kinds: Kinds = serde_json::from_str(&read(&folder().join("kinds.json"))).expect("kinds.json");
    assert!(kinds.out_of_reach.values().all(|reason| reason.contains(' ')), "a kind has no reason");
    let all = scenarios();
    let used: BTreeSet<_> = all.iter().flat_map(|(_, scenario)| scenario.kinds()).map(str::to_owned).collect();
    assert_eq!(used, kinds.expected);
    let source = read(&folder().join("../crates/flatwater-base/src/error/kind.rs"));
    let names = source.lines().filter_map(|line| line.trim().strip_suffix("\",")?.split_once(" \""));
    let names: BTreeSet<_> =
        names.filter(|(kind, _)| kind.chars().all(char::is_alphabetic)).map(|(_, name)| name.to_owned()).collect();
    let listed: BTreeSet<_> = kinds.expected.iter().chain(kinds.out_of_reach.keys()).cloned().collect();
    assert_eq!(names, listed);
    assert!(kinds.expected.iter().all(|kind| !kinds.out_of_reach.contains_key(kind)));
}

#[test]
fn what_a_driver_does_not_know_is_an_error() {
    let scenario = |text: &str| serde_json::from_str::<Scenario>(text).map(drop).map_err(|error| error.to_string());
    let with = |step: &str| scenario(&format!(r#"{{"name": "a_b", "steps": [{step}]}}"#));
    assert_eq!(with(r#"{"query": "SELECT 1", "rows": [[1]]}"#), Ok(()));
    for wrong in [
        r#"{"quary": "SELECT 1"}"#,
        r#"{"query": "SELECT 1", "execute": "SELECT 1"}"#,
        r#"{"query": "SELECT 1", "row": [1]}"#,
        r#"{"query": "SELECT 1", "error": {"kind": "sql", "massage": ""}}"#,
        r#"{"query": {"prepared": "p", "of": 1}}"#,
        r#"{"query": "SELECT 1", "params": [[1]]}"#,
        r#"{"query": "SELECT 1", "params": [9007199254740992]}"#,
        r#"{"query": "SELECT 1", "params": [1.0]}"#,
        r#"{"query": "SELECT 1", "params": [{"integer": "1"}]}"#,
        r#"{"open": "db", "options": {"reader": 1}}"#,
        r#"{"open": "db", "in": "db"}"#,
        r#"{"query": "SELECT 1", "verb": "execute"}"#,
        r#"{"next": "rows", "start": "later"}"#,
        r#"{"drop": "tx", "error": {"kind": "sql"}}"#,
        r#"{"transaction": [{"quary": "SELECT 1"}], "as": "tx"}"#,
    ] {
        assert!(with(wrong).is_err(), "{wrong}");
    }
    assert!(scenario(r#"{"name": "a_b", "step": []}"#).is_err());
}

#[test]
fn a_wrong_expectation_fails() {
    for wrong in [
        r#"{"query": "SELECT 1", "rows": [[2]]}"#,
        r#"{"query": "SELECT 1", "rows": [[{"real": "1"}]]}"#,
        r#"{"query": "SELECT 1", "rows": []}"#,
        r#"{"query": "SELECT 1 AS a", "columns": ["b"]}"#,
        r#"{"query": "SELECT 1", "error": {"kind": "sql"}}"#,
        r#"{"query": "SELEC 1"}"#,
        r#"{"query": "SELEC 1", "error": {"kind": "misuse"}}"#,
        r#"{"query": "SELEC 1", "error": {"kind": "sql", "code": "SQLITE_BUSY"}}"#,
        r#"{"query": "SELEC 1", "error": {"kind": "sql", "at": "1"}}"#,
        r#"{"query": "SELEC 1", "error": {"kind": "sql", "hides": "SELEC"}}"#,
        r#"{"query": "SELEC 1", "error": {"kind": "sql", "message_contains": "nothing like it"}}"#,
        r#"{"query_one": "SELECT 1", "row": null}"#,
        r#"{"query_value": "SELECT 1", "value": null}"#,
        r#"{"query_values": "SELECT 1", "values": [1, 1]}"#,
        r#"{"query_json": "SELECT 1 AS a", "json": "[]"}"#,
        r#"{"execute": "CREATE TABLE t (a)", "changes": 1}"#,
        r#"{"execute": "CREATE TABLE t (a)", "last_insert_rowid": 1}"#,
        r#"{"await": "nothing"}"#,
        r#"{"create": "nothing"}"#,
        r#"{"remove": "double"}"#,
        r#"{"create": "double"}, {"query_value": "SELECT double(1)", "value": 1}"#,
        r#"{"transaction": [], "as": "tx", "raised": "x"}"#,
        r#"{"transaction": [{"query": "SELECT 1", "rows": []}], "as": "tx"}"#,
        r#"{"migrate": [["1_a", "SELECT 1"]], "applied": []}"#,
        r#"{"backup": "file:x", "error": {"kind": "open"}}"#,
        r#"{"raise": "x"}"#,
        r#"{"begin": "db"}"#,
        r#"{"query": "SELECT 1", "start": "never awaited"}"#,
        r#"{"query": "SELECT 1", "in": "absent"}"#,
        r#"{"begin": "tx"}, {"in": "tx", "query": "SELECT 1", "timeout_ms": 1}"#,
        r#"{"stream": "s", "sql": "SELECT 1"}, {"next": "s", "rows": [[2]]}"#,
        r#"{"stream": "s", "sql": "SELECT 1"}, {"next": "s", "end": true}"#,
    ] {
        let scenario = format!(r#"{{"name": "a_b", "steps": [{wrong}]}}"#);
        let scenario: Scenario = serde_json::from_str(&scenario).expect(wrong);
        assert!(run(&scenario, &Place::Memory).is_err(), "{wrong}");
    }
}

#[test]
fn a_wrong_expectation_fails_on_plain_sqlite() {
    for wrong in [
        r#"{"query": "SELECT 1", "rows": [[2]]}"#,
        r#"{"query": "SELECT 1 AS a", "columns": ["b"]}"#,
        r#"{"query": "SELECT 1", "error": {"kind": "sql"}}"#,
        r#"{"query": "SELEC 1"}"#,
        r#"{"query": "SELEC 1", "error": {"kind": "constraint"}}"#,
        r#"{"query_one": "SELECT 1", "row": null}"#,
        r#"{"query_value": "SELECT 1", "value": null}"#,
        r#"{"query_values": "SELECT 1", "values": [1, 1]}"#,
        r#"{"execute": "INSERT INTO t VALUES (1)", "changes": 2}"#,
        r#"{"execute": "INSERT INTO t VALUES (1)", "last_insert_rowid": 2}"#,
        r#"{"execute_many": "INSERT INTO t VALUES (?)", "rows": [[1], [2]], "changes": 1}"#,
        r#"{"batch": [["SELECT 1", []]], "results": [{"rows": [[2]]}]}"#,
        r#"{"execute_script": "SELEC 1"}"#,
    ] {
        let create = r#"{"execute": "CREATE TABLE t (a)"}"#;
        let scenario: Scenario =
            serde_json::from_str(&format!(r#"{{"name": "a_b", "steps": [{create}, {wrong}]}}"#)).expect(wrong);
        let failed = run_plain(&scenario).expect("it is plain").expect_err(wrong);
        assert!(failed.starts_with("step 2"), "{wrong}: {failed}");
    }
}
