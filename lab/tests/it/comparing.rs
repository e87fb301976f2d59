//! `compare`.

use serde_json::{Value, json};

use crate::support::{lab, result, text, write};

/// What `compare --json` answers.
fn compare(arguments: &[&str]) -> Value {
    let output = lab(&["compare", "--json"]).args(arguments).output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn refusal(arguments: &[&str]) -> String {
    let output = lab(&["compare"]).args(arguments).output().unwrap();
    assert!(!output.status.success(), "it was not refused: {}", text(&output.stdout));
    text(&output.stderr)
}

fn verdict<'a>(comparison: &'a Value, lane: &str) -> &'a str {
    let lanes = comparison["lanes"].as_array().unwrap();
    lanes.iter().find(|known| known["lane"] == lane).unwrap()["verdict"].as_str().unwrap()
}

#[test]
fn a_result_compared_with_itself_has_no_effect_on_every_lane_and_metric() {
    let folder = tempfile::tempdir().unwrap();
    for runs in [1, 3, 5, 8] {
        let lanes = [("noop_execute", "flatwater", 2.0), ("point_query", "flatwater", 1.0), ("work", "raw", 90.0)];
        let file = write(folder.path(), "x.json", &result("one", runs, &lanes));
        let comparisons = compare(&[&file, &file]);
        let lanes: Vec<&Value> =
            comparisons.as_array().unwrap().iter().flat_map(|one| one["lanes"].as_array().unwrap()).collect();
        assert_eq!(lanes.len(), 3);
        for lane in lanes {
            assert_eq!(lane["verdict"], "no_effect", "{lane}");
            for metric in lane["metrics"].as_array().unwrap() {
                let tail_of_few = metric["verdict"] == "no_verdict" && runs < 5;
                assert!(metric["verdict"] == "no_effect" || tail_of_few, "{metric}");
            }
        }
    }
}

/// A base and a candidate of one `ab`, five runs a side.
fn ab(lanes: &[(&str, f64, f64)]) -> Value {
    let medians: Vec<(&str, &str, f64)> = lanes
        .iter()
        .flat_map(|(lane, base, candidate)| [(*lane, "base", *base), (*lane, "candidate", *candidate)])
        .collect();
    let mut result = result("one", 5, &medians);
    result["kind"] = json!("ab");
    result
}

#[test]
fn a_slowdown_of_a_fifth_is_rejected_and_the_quiet_lane_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let file = write(folder.path(), "x.json", &ab(&[("noop_execute", 2.0, 2.0), ("a", 50.0, 60.0), ("b", 70.0, 70.0)]));
    let comparison = &compare(&[&file])[0];
    assert_eq!(verdict(comparison, "a"), "rejected");
    assert_eq!(verdict(comparison, "b"), "no_effect");
    assert_eq!(comparison["veto"], Value::Null);
}

#[test]
fn a_slow_noop_vetoes_what_got_better() {
    let folder = tempfile::tempdir().unwrap();
    let calm = ab(&[("noop_execute", 2.0, 2.0), ("a", 50.0, 30.0)]);
    let slow = ab(&[("noop_execute", 2.0, 3.0), ("a", 50.0, 30.0)]);
    let calm = write(folder.path(), "calm.json", &calm);
    let slow = write(folder.path(), "slow.json", &slow);
    assert_eq!(verdict(&compare(&[&calm])[0], "a"), "accepted");
    let vetoed = &compare(&[&slow])[0];
    assert_eq!(verdict(vetoed, "a"), "rejected");
    assert!(vetoed["veto"].as_str().unwrap().contains("noop_execute vetoes"), "{vetoed}");
    let metrics = vetoed["lanes"].as_array().unwrap().iter().flat_map(|lane| lane["metrics"].as_array().unwrap());
    assert!(metrics.into_iter().all(|metric| metric["verdict"] != "accepted"));
}

#[test]
fn a_control_vetoes_when_it_got_worse_and_makes_doubtful_when_it_got_better() {
    let folder = tempfile::tempdir().unwrap();
    for (control, expected) in [(20.0, "accepted"), (30.0, "rejected"), (12.0, "inconclusive")] {
        let result = ab(&[("noop_execute", 2.0, 2.0), ("a", 50.0, 30.0), ("still", 20.0, control)]);
        let file = write(folder.path(), "x.json", &result);
        assert_eq!(verdict(&compare(&[&file, "--control", "still"])[0], "a"), expected, "{control}");
    }
}

#[test]
fn between_two_peers_the_noop_is_a_lane_like_any_other() {
    let folder = tempfile::tempdir().unwrap();
    let medians =
        [("noop_execute", "raw", 1.0), ("noop_execute", "ours", 9.0), ("a", "raw", 50.0), ("a", "ours", 20.0)];
    let file = write(folder.path(), "x.json", &result("one", 5, &medians));
    let comparison = &compare(&[&file, "--base", "raw", "--candidate", "ours"])[0];
    assert_eq!(verdict(comparison, "a"), "accepted");
    assert_eq!(comparison["veto"], Value::Null);
}

#[test]
fn results_measured_apart_have_figures_and_no_verdict() {
    let folder = tempfile::tempdir().unwrap();
    let one = write(folder.path(), "one.json", &result("one", 5, &[("a", "flatwater", 50.0)]));
    let other = write(folder.path(), "other.json", &result("other", 5, &[("a", "flatwater", 90.0)]));
    let comparison = &compare(&[&one, &other])[0];
    assert_eq!(comparison["paired"], false);
    assert_eq!(verdict(comparison, "a"), "no_verdict");
    let metric = &comparison["lanes"][0]["metrics"][0];
    assert!(metric["ratio"].as_f64().is_some() && metric["reason"] == "not paired", "{metric}");
    let printed = text(&lab(&["compare", &one, &other]).output().unwrap().stdout);
    assert!(printed.contains("not paired") && !printed.contains("rejected"), "{printed}");
}

#[test]
fn results_of_different_lanes_machines_or_builds_are_refused_unless_told() {
    let folder = tempfile::tempdir().unwrap();
    let base = result("one", 5, &[("a", "flatwater", 50.0)]);
    let one = write(folder.path(), "one.json", &base);
    let lanes = result("one", 5, &[("a", "flatwater", 50.0), ("b", "flatwater", 50.0)]);
    let altered = |pointer: &str, value: Value| {
        let mut other = base.clone();
        *other.pointer_mut(pointer).unwrap() = value;
        other
    };
    let table = [
        ("lanes", lanes),
        ("machines", altered("/machine/cpu", json!("another"))),
        ("builds", altered("/flags/rustc", json!("rustc 2"))),
        ("builds of SQLite", altered("/versions", json!({"flatwater": {"sqlite": "3.0.0"}}))),
        ("quick", altered("/quick", json!(true))),
    ];
    for (what, other) in table {
        let other = write(folder.path(), "other.json", &other);
        let refused = refusal(&[&one, &other]);
        assert!(refused.contains(what) && refused.contains("--anyway"), "{what}: {refused}");
        assert_eq!(verdict(&compare(&[&one, &other, "--anyway"])[0], "a"), "no_effect", "{what}");
    }
}

#[test]
fn what_is_no_result_is_refused_with_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let good =
        write(folder.path(), "good.json", &result("one", 1, &[("a", "x", 1.0), ("a", "y", 1.0), ("a", "z", 1.0)]));
    let not_json = folder.path().join("text.json");
    std::fs::write(&not_json, "hello").unwrap();
    let not_json = not_json.to_string_lossy().into_owned();
    let no_format = write(folder.path(), "none.json", &json!({"results": []}));
    let newer = write(folder.path(), "newer.json", &json!({"format": 99}));
    let table: [(&[&str], &str); 6] = [
        (&["absent.json", &good], "absent.json"),
        (&[&good, &not_json], "not valid JSON"),
        (&[&no_format, &good], "no `format`"),
        (&[&newer, &good], "format 99"),
        (&[&good], "--base and --candidate"),
        (&[&good, "--base", "x", "--candidate", "nobody"], "x, y, z"),
    ];
    for (arguments, expected) in table {
        let refused = refusal(arguments);
        assert!(refused.contains(expected), "{arguments:?}: {refused}");
    }
}

#[test]
fn failed_trials_and_lanes_of_one_side_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let medians = [("a", "raw", 50.0), ("a", "ours", 50.0), ("b", "ours", 50.0)];
    let mut result = result("one", 5, &medians);
    result["results"][0] = json!({"lane": "a", "peer": "raw", "run": 0, "order": 0, "error": "out of cheese"});
    let file = write(folder.path(), "x.json", &result);
    let comparison = &compare(&[&file, "--base", "raw", "--candidate", "ours"])[0];
    assert_eq!(comparison["notes"], json!(["only ours has b", "1 trials of raw failed: out of cheese"]));
    assert_eq!(comparison["lanes"][0]["metrics"][0]["pairs"], 4);
}
