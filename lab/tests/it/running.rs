//! `run` and `list`.

use std::process::{Command, Stdio};

use serde_json::Value;

use crate::support::{fake_peers, fakes_command, lab, run_fakes, text};

fn rows(result: &Value) -> &Vec<Value> {
    result["results"].as_array().unwrap()
}

#[test]
fn every_trial_is_a_row_and_a_line_and_the_sides_turn_round() {
    let folder = tempfile::tempdir().unwrap();
    let (output, result) =
        run_fakes(folder.path(), &["--lane", "work,noop_execute", "--peer", "steady,other", "--runs", "2"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(text(&output.stdout).lines().count(), 8);
    let seen: Vec<(&str, &str, u64, u64)> = rows(&result)
        .iter()
        .map(|row| {
            let name = |field: &str| row[field].as_str().unwrap();
            (name("lane"), name("peer"), row["run"].as_u64().unwrap(), row["order"].as_u64().unwrap())
        })
        .collect();
    let expected = [
        ("work", "steady", 0, 0),
        ("work", "other", 0, 1),
        ("noop_execute", "steady", 0, 0),
        ("noop_execute", "other", 0, 1),
        ("work", "other", 1, 0),
        ("work", "steady", 1, 1),
        ("noop_execute", "other", 1, 0),
        ("noop_execute", "steady", 1, 1),
    ];
    assert_eq!(seen, expected);
    assert_eq!((&result["partial"], &result["quick"], &result["format"]), (&false.into(), &false.into(), &1.into()));
    assert_eq!(result["versions"]["steady"]["compile_options"][0], "FAKE");
    assert!(result["machine"]["cores"].as_u64().unwrap() > 0);
    assert!(rows(&result)[0]["p50_us"].as_f64().unwrap() > 9.0 && rows(&result)[0]["work_us"].is_null());
    assert_eq!(std::fs::read_dir(folder.path().join("trials")).unwrap().count(), 0, "a trial left its folder");
}

#[test]
fn json_on_standard_output_has_nothing_beside_it() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = lab(&["run", "--lane", "work", "--peer", "steady", "--runs", "1", "--json", "-", "--peers-dir"]);
    let output = command.arg(fake_peers()).arg("--trials-dir").arg(folder.path()).output().unwrap();
    assert!(output.status.success());
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(rows(&result).len(), 1);
    assert!(text(&output.stderr).contains("p50"));
}

#[test]
fn a_peer_that_crashes_lies_or_does_not_build_is_a_row_and_the_others_go_on() {
    let folder = tempfile::tempdir().unwrap();
    let peers = "unbuilt,crashing,lying,steady";
    let (output, result) = run_fakes(folder.path(), &["--lane", "work", "--peer", peers, "--runs", "1"]);
    assert_eq!(output.status.code(), Some(1));
    let row = |peer: &str| rows(&result).iter().find(|row| row["peer"] == peer).unwrap();
    for (peer, expected) in
        [("unbuilt", "no compiler here"), ("crashing", "out of cheese"), ("lying", "percentiles fall")]
    {
        let error = row(peer)["error"].as_str().unwrap();
        assert!(error.contains(expected), "{peer}: {error}");
        assert!(row(peer).get("p50_us").is_none());
    }
    assert!(row("steady")["p50_us"].as_f64().is_some());
    assert_eq!(text(&output.stdout).lines().count(), 4);
}

#[test]
fn a_trial_past_its_limit_is_a_row_that_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let (output, result) =
        run_fakes(folder.path(), &["--lane", "work", "--peer", "hanging", "--runs", "1", "--limit", "1"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(rows(&result)[0]["error"].as_str().unwrap().contains("not done after 1 s"), "{result}");
}

#[test]
fn an_unknown_lane_or_peer_lists_the_known_and_writes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let table = [("nowhere", "steady", "noop_execute, work, extra_work"), ("work", "nobody", "steady, unbuilt")];
    for (lane, peer, expected) in table {
        let (output, result) = run_fakes(folder.path(), &["--lane", lane, "--peer", peer, "--runs", "1"]);
        assert_eq!(output.status.code(), Some(1));
        assert!(text(&output.stderr).contains(expected), "{}", text(&output.stderr));
        assert_eq!(result, Value::Null);
    }
}

#[test]
fn a_lane_that_a_peer_does_not_have_is_an_omitted_row() {
    let folder = tempfile::tempdir().unwrap();
    let (output, result) = run_fakes(folder.path(), &["--lane", "extra_work", "--peer", "steady,other", "--runs", "1"]);
    assert!(output.status.success());
    assert_eq!(rows(&result).len(), 1);
}

/// Starts a run that hangs in its second trial, after one that was measured, and waits for that.
#[cfg(unix)]
fn hanging(folder: &std::path::Path) -> std::process::Child {
    let mark = folder.join("mark");
    let arguments = ["--lane", "work", "--peer", "steady,hanging", "--runs", "1"];
    let mut command = fakes_command(folder, &arguments);
    let child = command.env("HANGING_MARK", &mark).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    while !mark.exists() {
        std::thread::yield_now();
    }
    child
}

#[cfg(unix)]
fn signal(child: &std::process::Child, name: &str) {
    let status = Command::new("kill").args(["-s", name, &child.id().to_string()]).status().unwrap();
    assert!(status.success());
}

#[cfg(unix)]
fn result_in(folder: &std::path::Path) -> Value {
    serde_json::from_slice(&std::fs::read(folder.join("result.json")).unwrap()).unwrap()
}

#[test]
#[cfg(unix)]
fn an_interrupted_run_keeps_its_rows_and_is_marked_partial() {
    let folder = tempfile::tempdir().unwrap();
    let mut child = hanging(folder.path());
    signal(&child, "INT");
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let result = result_in(folder.path());
    assert_eq!((rows(&result).len(), &result["partial"]), (1, &true.into()));
    assert_eq!(std::fs::read_dir(folder.path().join("trials")).unwrap().count(), 0);
}

#[test]
#[cfg(unix)]
fn a_killed_run_leaves_a_whole_file_that_is_marked_partial() {
    let folder = tempfile::tempdir().unwrap();
    let mut child = hanging(folder.path());
    signal(&child, "KILL");
    child.wait().unwrap();
    let result = result_in(folder.path());
    assert_eq!((rows(&result).len(), &result["partial"]), (1, &true.into()));
}

#[test]
fn list_shows_peers_and_the_lanes_of_those_that_are_built() {
    let output = lab(&["list", "--build", "--peers-dir"]).arg(fake_peers()).output().unwrap();
    let listed = text(&output.stdout);
    assert!(output.status.success());
    for expected in ["steady", "fake 1, SQLite 0.0", "does not build", "extra_work", "works more"] {
        assert!(listed.contains(expected), "{expected}: {listed}");
    }
}
