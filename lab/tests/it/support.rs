//! Calling the tool, and results made up for it.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::{Value, json};

/// The tool, to be run inside the project.
pub(crate) fn lab(arguments: &[&str]) -> Command {
    lab_in(Path::new(env!("CARGO_MANIFEST_DIR")), arguments)
}

/// The tool, to be run in a folder.
pub(crate) fn lab_in(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_flatwater-lab"));
    command.args(arguments).current_dir(folder);
    command
}

/// The tool's fake peers.
pub(crate) fn fake_peers() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fake-peers")
}

/// Runs `run` on fake peers; databases and result lie in the folder. Answers the output and the result.
pub(crate) fn run_fakes(folder: &Path, arguments: &[&str]) -> (Output, Value) {
    let json = folder.join("result.json");
    let output = fakes_command(folder, arguments).output().expect("the tool starts");
    let result = std::fs::read(&json).map_or(Value::Null, |bytes| serde_json::from_slice(&bytes).expect("valid JSON"));
    (output, result)
}

/// The command of `run_fakes`.
pub(crate) fn fakes_command(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = lab(&["run", "--peers-dir"]);
    command.arg(fake_peers()).arg("--json").arg(folder.join("result.json"));
    command.arg("--trials-dir").arg(folder.join("trials")).args(arguments);
    command
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A result of `runs` runs: medians by lane and peer, the sides in turn first, with a noise of half a percent.
pub(crate) fn result(id: &str, runs: u32, medians: &[(&str, &str, f64)]) -> Value {
    let rows = (0..runs).flat_map(|run| {
        medians.iter().enumerate().map(move |(place, (lane, peer, p50))| {
            let order = if run % 2 == 0 { place } else { medians.len() - 1 - place };
            let noise = [0.0, 0.004, -0.003, 0.005, -0.002][(run as usize + 2 * place) % 5];
            row(lane, peer, (run, order), p50 * (1.0 + noise))
        })
    });
    json!({
        "format": 1, "id": id, "started": "2020-01-01T00:00:00Z", "kind": "run",
        "machine": {"cpu": "a cpu", "cores": 2, "memory_gib": 8, "os": "an os", "kernel": "1", "arch": "x", "filesystem": "ext4"},
        "versions": {}, "flags": {"rustc": "rustc 1", "sqlite_flags": ""}, "commit": null, "dirty": false,
        "partial": false, "quick": false, "runs": runs, "lanes": {}, "results": rows.collect::<Vec<_>>(),
    })
}

fn row(lane: &str, peer: &str, (run, order): (u32, usize), p50: f64) -> Value {
    json!({
        "lane": lane, "peer": peer, "run": run, "order": order, "ops": 1000, "seconds": p50 / 1000.0,
        "p50_us": p50, "p90_us": p50 * 1.2, "p95_us": p50 * 1.4, "p99_us": p50 * 2.0, "p999_us": p50 * 3.0,
        "max_us": p50 * 9.0, "work_us": null, "cpu_seconds": 0.5, "peak_rss_bytes": 9_000_000,
        "extra": {"latency_quantiles": [[0.5, p50], [0.99, p50 * 2.0], [1.0, p50 * 9.0]]},
    })
}

/// Writes a result and answers its path.
pub(crate) fn write(folder: &Path, name: &str, result: &Value) -> String {
    let path = folder.join(name);
    std::fs::write(&path, result.to_string()).unwrap();
    path.to_string_lossy().into_owned()
}
