//! `ab`, on a repository of its own whose peer reads its cost from a file.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

use crate::support::{fake_peers, lab_in, text};

/// A repository with the fake peer as `flatwater`, and one commit.
struct Project(tempfile::TempDir);

const CALM: &str = "noop_execute 2\nwork 50\nextra_work 70\n";

impl Project {
    fn new() -> Self {
        let project = Self(tempfile::tempdir().unwrap());
        let peer = project.path().join("lab/peers/flatwater");
        std::fs::create_dir_all(&peer).unwrap();
        std::fs::copy(fake_peers().join("fake/peer.sh"), peer.join("peer.sh")).unwrap();
        let description = r#"[{"name": "flatwater", "command": ["sh", "peer.sh", "steady"]}]"#;
        std::fs::write(peer.join("peer.json"), description).unwrap();
        std::fs::write(project.path().join("lab/Cargo.toml"), "").unwrap();
        std::fs::write(project.path().join(".gitignore"), "lab/out/\n").unwrap();
        project.cost(CALM);
        project.git(&["init", "--quiet"]);
        project.commit("the base");
        project
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn cost(&self, cost: &str) {
        std::fs::write(self.path().join("lab/peers/flatwater/cost"), cost).unwrap();
    }

    fn git(&self, arguments: &[&str]) -> String {
        let identity = ["-c", "user.name=lab", "-c", "user.email=lab@localhost", "-c", "commit.gpgsign=false"];
        let output = Command::new("git").args(identity).args(arguments).current_dir(self.path()).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", text(&output.stderr));
        text(&output.stdout)
    }

    fn commit(&self, message: &str) {
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "--message", message]);
    }

    /// Measures two revisions. Answers what was printed, and the verdicts.
    fn ab(&self, arguments: &[&str]) -> (Output, Value) {
        let json = self.path().join("lab/out/ab.json");
        let json = json.to_string_lossy();
        let output = lab_in(self.path(), &["ab"]).args(arguments).args(["--json", &json]).output().unwrap();
        let compared = lab_in(self.path(), &["compare", "--json", &json]).output().unwrap();
        (output, serde_json::from_slice::<Value>(&compared.stdout).map_or(Value::Null, |mut list| list[0].take()))
    }
}

fn verdict<'a>(comparison: &'a Value, lane: &str) -> &'a str {
    let lanes = comparison["lanes"].as_array().unwrap();
    lanes.iter().find(|known| known["lane"] == lane).unwrap()["verdict"].as_str().unwrap()
}

#[test]
fn a_planted_slowdown_of_a_fifth_is_rejected_and_leaves_no_checkout() {
    let project = Project::new();
    project.cost(&CALM.replace("work 50\n", "work 60\n"));
    let (output, comparison) = project.ab(&["HEAD", ".", "--lane", "work,extra_work", "--runs", "5"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(verdict(&comparison, "work"), "rejected");
    assert_eq!(verdict(&comparison, "extra_work"), "no_effect");
    assert_eq!(verdict(&comparison, "noop_execute"), "no_effect", "the guard is always measured");
    let printed = text(&output.stdout);
    assert!(printed.contains("work: rejected: ") && printed.contains("working tree with changes"), "{printed}");
    assert_eq!(project.git(&["worktree", "list"]).lines().count(), 1);
    assert!(!project.path().join("lab/out/ab/base").exists());
}

#[test]
fn a_planted_slow_noop_vetoes_a_gain() {
    let project = Project::new();
    project.cost("noop_execute 3\nwork 25\nextra_work 70\n");
    project.commit("faster, at a price");
    let (output, comparison) = project.ab(&["HEAD~1", "HEAD", "--lane", "work", "--runs", "5"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(verdict(&comparison, "work"), "rejected");
    assert!(comparison["veto"].as_str().unwrap().contains("noop_execute vetoes"), "{comparison}");
}

#[test]
fn the_sides_are_interleaved_and_carry_their_commits() {
    let project = Project::new();
    project.cost("work 25\n");
    project.commit("faster");
    let (_, _) = project.ab(&["HEAD~1", "HEAD", "--lane", "work", "--runs", "2"]);
    let result: Value =
        serde_json::from_slice(&std::fs::read(project.path().join("lab/out/ab.json")).unwrap()).unwrap();
    let rows = result["results"].as_array().unwrap();
    let peers: Vec<&str> =
        rows.iter().filter(|row| row["lane"] == "work").map(|row| row["peer"].as_str().unwrap()).collect();
    assert_eq!(peers, ["base", "candidate", "candidate", "base"]);
    let head = project.git(&["rev-parse", "HEAD"]);
    let candidates = rows.iter().filter(|row| row["peer"] == "candidate");
    assert!(candidates.into_iter().all(|row| row["rev"] == head.trim()));
    assert_eq!((&result["kind"], &result["dirty"]), (&"ab".into(), &false.into()));
    assert_eq!(result["commit"], head.trim());
}

#[test]
fn a_paced_lane_of_both_sides_is_paced_by_the_floor_of_the_working_tree() {
    let project = Project::new();
    for (name, kind) in [("flatwater", "paced"), ("raw", "raw")] {
        let peer = project.path().join("lab/peers").join(name);
        std::fs::create_dir_all(&peer).unwrap();
        std::fs::copy(fake_peers().join("fake/peer.sh"), peer.join("peer.sh")).unwrap();
        let description = format!(r#"[{{"name": "{name}", "command": ["sh", "peer.sh", "{kind}"]}}]"#);
        std::fs::write(peer.join("peer.json"), description).unwrap();
    }
    project.commit("a paced lane");
    let (output, _) = project.ab(&["HEAD", ".", "--lane", "paced_work", "--runs", "1"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let result: Value =
        serde_json::from_slice(&std::fs::read(project.path().join("lab/out/ab.json")).unwrap()).unwrap();
    let per_second = result["paces"]["paced_work"]["floor_per_second"].as_f64().unwrap() * 0.5;
    let rows = result["results"].as_array().unwrap().iter().filter(|row| row["lane"] == "paced_work");
    let begun: Vec<f64> = rows.map(|row| row["extra"]["begun"].as_f64().unwrap()).collect();
    assert_eq!(begun, [per_second, per_second]);
}

#[test]
fn a_declared_control_is_remembered_and_vetoes_later_comparisons_too() {
    let project = Project::new();
    project.cost("noop_execute 2\nwork 25\nextra_work 99\n");
    let (_, comparison) = project.ab(&["HEAD", ".", "--lane", "work", "--control", "extra_work", "--runs", "5"]);
    assert_eq!(verdict(&comparison, "work"), "rejected");
    assert!(comparison["veto"].as_str().unwrap().contains("extra_work vetoes"), "{comparison}");
}

#[test]
fn a_revision_without_peers_is_measured_with_those_of_the_working_tree() {
    let project = Project::new();
    project.git(&["rm", "--quiet", "-r", "--cached", "lab/peers"]);
    project.git(&["commit", "--quiet", "--message", "no peers"]);
    let (output, comparison) = project.ab(&["HEAD", ".", "--lane", "work", "--runs", "3"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(verdict(&comparison, "work"), "no_effect");
    assert!(text(&output.stderr).contains("the base was measured with the working tree's lanes"));
}

#[test]
fn bad_revisions_lanes_and_controls_are_refused_before_a_trial() {
    let project = Project::new();
    let table: [(&[&str], &str); 4] = [
        (&["nowhere", "."], "`nowhere` names no commit"),
        (&["HEAD", ".", "--lane", "nothing"], "noop_execute, work, extra_work"),
        (&["HEAD", ".", "--control", "nothing"], "noop_execute, work, extra_work"),
        (&["HEAD", ".", "--peer", "nobody"], "unknown peer `nobody`"),
    ];
    for (arguments, expected) in table {
        let (output, _) = project.ab(arguments);
        assert_eq!(output.status.code(), Some(1));
        assert!(text(&output.stderr).contains(expected), "{}", text(&output.stderr));
        assert_eq!(project.git(&["worktree", "list"]).lines().count(), 1);
    }
}
