//! The table of what an open database takes while nobody uses it, for the page of speed, from the lane `at_rest`.
//!
//! Owns: its columns, and the form of its numbers, which are medians over the runs. Pure. Leaves out: where the table stands (`readme`).

use anyhow::{Result, bail};

use crate::commands::busy::Side;
use crate::figures::floor::FLOOR;
use crate::figures::result::Measured;

const LANE: &str = "at_rest";
/// The rows, if the result has them, each with what the library is called on the page.
const PEERS: [(&str, &str); 5] = [
    (FLOOR, "rusqlite, one connection"),
    ("tokio-rusqlite", "tokio-rusqlite"),
    ("deadpool-sqlite", "deadpool-sqlite"),
    ("sqlx", "sqlx"),
    ("flatwater", "Flatwater"),
];
const MIB: f64 = 1024.0 * 1024.0;

/// Returns the table of a result that has the lane.
pub(super) fn rest_table(measured: &Measured) -> Result<String> {
    let rows: String = PEERS.iter().filter_map(|(peer, title)| row(measured, peer, title)).collect();
    if rows.is_empty() {
        bail!("the result has not the lane {LANE}");
    }
    Ok(format!("| | threads | descriptors | memory | program |\n| --- | ---: | ---: | ---: | ---: |\n{rows}"))
}

fn row(measured: &Measured, peer: &str, title: &str) -> Option<String> {
    let side = Side::of(measured, LANE, peer);
    let figure = |name: &str| side.number(name);
    let [threads, descriptors] = ["rest_threads", "rest_descriptors"].map(figure);
    let [memory, program] = ["rest_bytes", "program_bytes"].map(|name| figure(name).map(|bytes| bytes / MIB));
    let (threads, descriptors) = (threads?, descriptors?);
    Some(format!("| {title} | {threads:.0} | {descriptors:.0} | {:.1} MiB | {:.1} MiB |\n", memory?, program?))
}
