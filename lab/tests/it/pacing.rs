//! Lanes that are paced by a share of the floor's rate.

use std::path::Path;
use std::process::Output;

use serde_json::Value;

use crate::support::{fake_peers, lab, run_fakes, text};

fn row<'a>(result: &'a Value, lane: &str) -> &'a Value {
    result["results"].as_array().unwrap().iter().find(|row| row["lane"] == lane).unwrap()
}

#[test]
fn a_paced_lane_is_begun_at_its_share_of_what_the_floor_reaches_on_this_machine() {
    for peers in ["paced", "raw,paced", "paced,raw"] {
        let folder = tempfile::tempdir().unwrap();
        let (output, result) =
            run_fakes(folder.path(), &["--lane", "paced_work,work", "--peer", peers, "--runs", "2", "--quick"]);
        assert!(output.status.success(), "{}", text(&output.stderr));
        let pace = &result["paces"]["paced_work"];
        let floor = pace["floor_per_second"].as_f64().unwrap();
        assert_eq!((&pace["of"], &pace["share"]), (&"flat_out".into(), &0.5.into()));
        assert!((99_000.0..=100_000.1).contains(&floor), "the fake raw does 1,000 operations in 10 ms: {floor}");
        assert_eq!(row(&result, "paced_work")["extra"]["begun"].as_f64().unwrap(), floor * 0.5);
        assert!(row(&result, "work")["extra"]["begun"].is_null(), "a lane that is not paced is given no rate");
        let rows = result["results"].as_array().unwrap();
        assert!(rows.iter().all(|row| row["lane"] != "flat_out"), "measuring the floor is no row");
        assert!(text(&output.stdout).contains("paced_work                 paced at "), "{}", text(&output.stdout));
    }
}

#[test]
fn a_comparison_says_how_the_lane_was_paced() {
    let folder = tempfile::tempdir().unwrap();
    let (_, mut result) = run_fakes(folder.path(), &["--lane", "paced_work", "--peer", "paced", "--runs", "1"]);
    let mut other = result["results"][0].clone();
    other["peer"] = "other".into();
    result["results"].as_array_mut().unwrap().push(other);
    let file = crate::support::write(folder.path(), "two.json", &result);
    let said = text(&lab(&["compare", &file]).output().unwrap().stdout);
    assert!(
        said.contains("note: paced_work is paced at 5") || said.contains("note: paced_work is paced at 49"),
        "{said}"
    );
}

/// Runs the fake peers with another `raw`.
fn with_raw(folder: &Path, command: &str) -> (Output, Value) {
    let peers = folder.join("peers/fake");
    std::fs::create_dir_all(&peers).unwrap();
    std::fs::copy(fake_peers().join("fake/peer.sh"), peers.join("peer.sh")).unwrap();
    let described = std::fs::read_to_string(fake_peers().join("fake/peer.json")).unwrap();
    let raw = r#""command": ["sh", "peer.sh", "raw"]"#;
    assert!(described.contains(raw));
    std::fs::write(peers.join("peer.json"), described.replace(raw, command)).unwrap();
    let json = folder.join("result.json");
    let mut run = lab(&["run", "--lane", "paced_work,work", "--peer", "paced", "--runs", "1", "--peers-dir"]);
    let run = run.arg(folder.join("peers")).arg("--json").arg(&json).arg("--trials-dir").arg(folder.join("trials"));
    let output = run.output().unwrap();
    (output, serde_json::from_slice(&std::fs::read(json).unwrap()).unwrap())
}

#[test]
fn without_a_floor_a_paced_lane_is_an_error_that_says_so_and_the_others_go_on() {
    let table = [
        (
            r#""command": ["sh", "peer.sh", "crashing"]"#,
            "raw was not measured in flat_out: exit status: 3: out of cheese",
        ),
        (
            r#""build": ["false"], "command": ["sh", "peer.sh", "raw"]"#,
            "raw was not measured in flat_out: it does not build",
        ),
    ];
    for (command, expected) in table {
        let folder = tempfile::tempdir().unwrap();
        let (output, result) = with_raw(folder.path(), command);
        assert_eq!(output.status.code(), Some(1));
        let error = row(&result, "paced_work")["error"].as_str().unwrap();
        assert!(error.contains(expected), "{error}");
        assert!(row(&result, "work")["p50_us"].as_f64().is_some());
        assert!(result.get("paces").is_none());
    }
}
