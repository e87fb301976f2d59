//! Whether `ab` sees what is planted in the engine: builds and measures the real thing, so it is run by `make bench-check`
//! on a quiet machine and not with the other tests.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::support::{lab_in, text};

fn git(folder: &Path, arguments: &[&str]) {
    let identity = ["-c", "user.name=lab", "-c", "user.email=lab@localhost", "-c", "commit.gpgsign=false"];
    let output = Command::new("git").args(identity).args(arguments).current_dir(folder).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", text(&output.stderr));
}

/// A clone of the project with two branches: one with slower `execute_many`, one with a slower UPDATE of nothing.
fn clone(folder: &Path) -> PathBuf {
    let project = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let clone = folder.join("clone");
    git(folder, &["clone", "--quiet", "--shared", &project.to_string_lossy(), &clone.to_string_lossy()]);
    git(&clone, &["branch", "plain"]);
    for planted in ["slow_many", "slow_noop"] {
        let patch = project.join("lab/tests/planted").join(planted).with_extension("patch");
        git(&clone, &["checkout", "--quiet", "-b", planted, "plain"]);
        git(&clone, &["apply", &patch.to_string_lossy()]);
        git(&clone, &["commit", "--quiet", "--all", "--message", planted]);
    }
    clone
}

/// Measures two branches, shows what was printed, and answers the comparison.
fn ab(clone: &Path, base: &str, candidate: &str) -> Value {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("planted");
    let json = clone.join("lab/out/ab.json");
    let mut command = lab_in(clone, &["ab", base, candidate, "--lane", "many_10k", "--runs", "9", "--json"]);
    let output = command.arg(&json).arg("--target-dir").arg(target).output().unwrap();
    println!("{}{}", text(&output.stdout), text(&output.stderr));
    assert!(output.status.success());
    let compared = lab_in(clone, &["compare", "--json"]).arg(&json).output().unwrap();
    serde_json::from_slice::<Value>(&compared.stdout).unwrap()[0].take()
}

fn verdict<'a>(comparison: &'a Value, lane: &str) -> &'a Value {
    comparison["lanes"]
        .as_array()
        .unwrap()
        .iter()
        .find(|known| known["lane"] == lane)
        .map(|lane| &lane["verdict"])
        .unwrap()
}

#[test]
#[ignore = "it builds and measures Flatwater: make bench-check"]
fn a_slowdown_planted_in_the_engine_is_rejected_and_a_slow_noop_planted_in_the_engine_vetoes() {
    let folder = tempfile::tempdir().unwrap();
    let clone = clone(folder.path());
    let slower = ab(&clone, "plain", "slow_many");
    assert_eq!(verdict(&slower, "many_10k"), "rejected");
    assert_ne!(verdict(&slower, "noop_execute"), "rejected");
    let faster_at_a_price = ab(&clone, "slow_many", "slow_noop");
    assert!(faster_at_a_price["veto"].as_str().unwrap().contains("noop_execute"), "{faster_at_a_price}");
    assert_eq!(verdict(&faster_at_a_price, "many_10k"), "rejected");
}
