//! The statements that change a file, which plain SQLite and Flatwater use alike.

use rand::RngExt;
use rand::rngs::StdRng;

use super::setup::EXTRA;

/// The highest row of `item`.
const ITEMS: u32 = 40;

/// A change of one file in one commit.
pub(super) fn change(schema: &str, rng: &mut StdRng) -> String {
    let (id, n) = (rng.random_range(1..=ITEMS), rng.random_range(0..1000));
    match rng.random_range(0..4) {
        0 | 1 => together(schema),
        2 => format!("INSERT OR REPLACE INTO {schema}.item VALUES ({id}, {n}, 'body {n}')"),
        _ => format!("DELETE FROM {schema}.item WHERE id = {id}"),
    }
}

/// Changes all rows of `pair` together.
pub(super) fn together(schema: &str) -> String {
    format!("UPDATE {schema}.pair SET n = n + 1")
}

/// Raises the counter, and answers its new value.
pub(super) fn raise(schema: &str) -> String {
    format!("UPDATE {schema}.counter SET n = n + 1 WHERE id = 1 RETURNING n")
}

/// Definitions that can be made at any time.
pub(super) fn definitions(schema: &str) -> Vec<String> {
    let s = schema;
    let of = |n: usize| {
        [
            format!(
                "CREATE TABLE IF NOT EXISTS {s}.extra_{n} (id INTEGER PRIMARY KEY, a UNIQUE, b REFERENCES item (id), \
                 c TEXT COLLATE NOCASE DEFAULT 'x{n}', d AS (a || {n}), UNIQUE (b, c))"
            ),
            format!("DROP TABLE IF EXISTS {s}.extra_{n}"),
            format!("CREATE INDEX IF NOT EXISTS {s}.item_{n} ON item (body COLLATE NOCASE, n DESC) WHERE id > {n}"),
            format!("DROP INDEX IF EXISTS {s}.item_{n}"),
        ]
    };
    (0..EXTRA).flat_map(of).collect()
}
