//! The engine's figures beside raw rusqlite (`prepare_cached`, one thread), as JSON on standard output.
//!
//! Each pair runs several times in this one process, sides in turn and in changing order, each on a fresh file; the
//! medians over the rounds and their ratio are printed. The work that both sides share stands in `workload`.

mod pairs;
mod workload;

use serde_json::json;

/// Rounds of each pair: `FLATWATER_ROUNDS`, or 5.
fn rounds() -> usize {
    std::env::var("FLATWATER_ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(5)
}

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime can be started");
    let pairs = pairs::all(&runtime, rounds());
    let report = json!({
        "sqlite": flatwater::rusqlite::version(),
        "cores": std::thread::available_parallelism().map_or(0, std::num::NonZero::get),
        "rounds": rounds(),
        "pairs": pairs,
    });
    println!("{}", serde_json::to_string_pretty(&report).expect("a report is valid JSON"));
}
