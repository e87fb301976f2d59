//! File names with characters that have a meaning in URIs, in SQL, in a shell, or for SQLite.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStringExt;

use rand::RngExt;
use rand::rngs::StdRng;

const NAMES: &[&str] = &[
    "a b?mode=ro#x%41.db",
    "file:x.db?mode=memory",
    ":memory:",
    "two\nlines.db",
    "'\";DROP TABLE item;--.db",
    "Zürich \u{202e}日本 \u{1f980}.db",
    "-x.db",
    "~",
    "x-wal",
    "x.db-journal",
    " ",
    "b\\c.db",
    "%00%2e.db",
];

/// Long names: the first length leaves room for the suffix `-journal`, the others do not.
const LONG: &[usize] = &[247, 251, 255];
/// Longer than the paths that SQLite accepts.
const DEEP: usize = 600;

/// Returns a random name, most often an ordinary one.
pub(super) fn any(rng: &mut StdRng) -> OsString {
    match rng.random_range(0..20) {
        0 | 1 => NAMES[rng.random_range(0..NAMES.len())].into(),
        2 => "x".repeat(LONG[rng.random_range(0..LONG.len())]).into(),
        3 => OsString::from_vec(b"\xff\xfe\x80.db".to_vec()),
        4 => format!("{}stranger.db", "deep/".repeat(DEEP / "deep/".len())).into(),
        _ => "stranger.db".into(),
    }
}

/// Returns whether the longest name of a file beside it is still valid.
pub(super) fn has_room_beside(name: &OsStr) -> bool {
    name.len() <= LONG[0] || name.as_encoded_bytes().contains(&b'/')
}
