//! Sound databases, which are damaged later. Plain SQLite makes each of them from random numbers.
//!
//! Owns: their content, and the files they consist of: the database alone, with a WAL that is not checkpointed, or with
//! the rollback journal of a process that died during a write.

use std::fs;
use std::path::Path;

use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, RngExt};
use rusqlite::{Connection, params};

use super::stranger::{Stranger, beside};
use crate::finding::Finding;

/// How the last writer left a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Left {
    InOrder,
    InOrderInWalMode,
    WithWal,
    WithHotJournal,
}

/// A page of the file, from the table-valued function `dbstat`.
#[derive(Debug, Clone)]
pub(super) struct Page {
    pub(super) number: usize,
    /// `internal`, `leaf` or `overflow`.
    pub(super) sort: String,
}

#[derive(Debug, Clone)]
pub(super) struct Sound {
    pub(super) files: Stranger,
    pub(super) pages: Vec<Page>,
    pub(super) about: String,
}

const PAGE_SIZES: &[u32] = &[512, 1024, 2048, 4096, 4096, 8192, 16384, 32768, 65536];

const SCHEMA: &str = "
    CREATE TABLE item (id INTEGER PRIMARY KEY, a INT, b TEXT, c BLOB, CHECK (a < 1000000));
    CREATE INDEX item_a ON item (a);
    CREATE INDEX item_b ON item (b COLLATE NOCASE, a DESC);
    CREATE INDEX item_some ON item (a) WHERE a > 500;
    CREATE INDEX item_length ON item (length(b));
    CREATE TABLE word (k TEXT PRIMARY KEY, v) WITHOUT ROWID;
    CREATE INDEX word_v ON word (v);
    CREATE TABLE long (id INTEGER PRIMARY KEY, body);
    CREATE TABLE counted (id INTEGER PRIMARY KEY AUTOINCREMENT, x UNIQUE, twice INT AS (x * 2) STORED, more AS (x + 1));
    CREATE INDEX counted_more ON counted (more);
    CREATE TABLE child (id INTEGER PRIMARY KEY, item REFERENCES item (id) ON DELETE CASCADE);
    CREATE INDEX child_item ON child (item);
    CREATE TABLE typed (a INT, b TEXT NOT NULL, c REAL) STRICT;
    CREATE VIEW seen AS SELECT item.id, b, v FROM item LEFT JOIN word ON k = b;
    CREATE TABLE log (what, id);
    CREATE TRIGGER item_added AFTER INSERT ON item BEGIN INSERT INTO log VALUES ('added', new.id); END;
    CREATE TRIGGER item_changed AFTER UPDATE ON item BEGIN UPDATE log SET what = 'changed' WHERE id = new.id; END;
    CREATE TRIGGER item_gone AFTER DELETE ON item BEGIN DELETE FROM log WHERE id = old.id; END;
    CREATE VIRTUAL TABLE note USING fts5(body);
    CREATE VIRTUAL TABLE box USING rtree(id, x0, x1);
";

/// Makes a database in `scratch`, with `page_size` if it is given.
pub(super) fn make(rng: &mut StdRng, scratch: &Path, page_size: Option<u32>, left: Left) -> Result<Sound, Finding> {
    let path = scratch.join("sound.db");
    for end in ["", "-wal", "-journal", "-shm"] {
        let _ = fs::remove_file(beside(&path, end));
    }
    let plain = Connection::open(&path)?;
    let page_size = page_size.unwrap_or_else(|| *PAGE_SIZES.choose(rng).expect("there are some"));
    let encoding = ["UTF-8", "UTF-8", "UTF-16le", "UTF-16be"].choose(rng).expect("there are some");
    let vacuum = rng.random_range(0..3);
    plain.execute_batch(&format!(
        "PRAGMA page_size = {page_size}; PRAGMA encoding = '{encoding}'; PRAGMA auto_vacuum = {vacuum};
         PRAGMA synchronous = OFF; PRAGMA foreign_keys = OFF"
    ))?;
    plain.execute_batch(SCHEMA)?;
    fill(rng, &plain)?;
    if rng.random_bool(0.3) {
        plain.execute_batch("ANALYZE")?;
    }
    let pages = pages(&plain)?;
    let files = leave(rng, plain, &path, left)?;
    let about = format!("{page_size} bytes a page, {encoding}, auto_vacuum {vacuum}, {left:?}, {} pages", pages.len());
    Ok(Sound { files, pages, about })
}

fn fill(rng: &mut StdRng, plain: &Connection) -> rusqlite::Result<()> {
    plain.execute_batch("BEGIN")?;
    let rows = rng.random_range(20..700);
    for id in 1..=rows {
        let a = rng.random_range(0..1000);
        plain.prepare_cached("INSERT INTO item VALUES (?, ?, ?, ?)")?.execute(params![
            id,
            a,
            word(rng),
            bytes(rng, 60)
        ])?;
        plain.prepare_cached("INSERT OR IGNORE INTO word VALUES (?, ?)")?.execute(params![word(rng), a])?;
        plain.prepare_cached("INSERT OR IGNORE INTO counted (x) VALUES (?)")?.execute([a])?;
        plain.prepare_cached("INSERT INTO child (item) VALUES (?)")?.execute([rng.random_range(1..=rows)])?;
        if id % 4 == 0 {
            plain.prepare_cached("INSERT INTO note VALUES (?)")?.execute([format!(
                "{} {} {}",
                word(rng),
                word(rng),
                word(rng)
            )])?;
            plain.prepare_cached("INSERT INTO box VALUES (?, ?, ?)")?.execute(params![id, a, a + 7])?;
            plain.prepare_cached("INSERT INTO typed VALUES (?, ?, ?)")?.execute(params![a, word(rng), 0.5])?;
        }
    }
    for _ in 0..rng.random_range(3..20) {
        let longest = *[300, 3_000, 30_000].choose(rng).expect("there are some");
        plain.execute("INSERT INTO long (body) VALUES (?)", [bytes(rng, longest)])?;
    }
    // Add pages to the free list.
    plain.execute_batch(
        "CREATE TABLE brief (a); WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 100)
         INSERT INTO brief SELECT zeroblob(300) FROM n; COMMIT; DROP TABLE brief;
         DELETE FROM long WHERE id % 5 = 0; DELETE FROM item WHERE id % 13 = 0;
         DELETE FROM child WHERE item NOT IN (SELECT id FROM item); DELETE FROM note WHERE rowid % 7 = 0;
         INSERT INTO long (body) SELECT zeroblob(3 * page_size) FROM pragma_page_size",
    )
}

fn word(rng: &mut StdRng) -> String {
    const PARTS: &[&str] = &["ada", "grace", "Zürich", "日本", "mole", "note", "a'b", "word", "x"];
    format!("{}{}", PARTS.choose(rng).expect("there are some"), rng.random_range(0..400))
}

fn bytes(rng: &mut StdRng, longest: usize) -> Vec<u8> {
    let mut bytes = vec![0; rng.random_range(0..longest)];
    rng.fill_bytes(&mut bytes);
    bytes
}

fn pages(plain: &Connection) -> rusqlite::Result<Vec<Page>> {
    let mut all = plain.prepare("SELECT pageno, pagetype FROM dbstat ORDER BY pageno")?;
    let page = |row: &rusqlite::Row<'_>| Ok(Page { number: row.get(0)?, sort: row.get(1)? });
    all.query_map([], page)?.collect()
}

/// Ends the last writer as `left` says, and reads the files it left.
fn leave(rng: &mut StdRng, plain: Connection, path: &Path, left: Left) -> Result<Stranger, Finding> {
    match left {
        Left::InOrder => {}
        Left::InOrderInWalMode => plain.execute_batch("PRAGMA journal_mode = wal; DELETE FROM log")?,
        Left::WithWal => {
            plain.execute_batch("PRAGMA journal_mode = wal; PRAGMA wal_autocheckpoint = 0")?;
            for _ in 0..rng.random_range(1..8) {
                plain.execute("UPDATE item SET a = a + 1, b = ? WHERE id % 5 = 1", [word(rng)])?;
                plain.execute("INSERT INTO long (body) VALUES (?)", [bytes(rng, 9000)])?;
            }
            return Ok(Stranger::read(path)?);
        }
        Left::WithHotJournal => {
            // A small cache, so that pages are written before the commit, and their journal records before them.
            plain.execute_batch(
                "PRAGMA synchronous = NORMAL; PRAGMA cache_size = 2; BEGIN IMMEDIATE;
                 UPDATE item SET a = a + 1, c = zeroblob(70); UPDATE word SET v = v + 1;
                 INSERT INTO long (body) VALUES (zeroblob(20000))",
            )?;
            return Ok(Stranger::read(path)?);
        }
    }
    plain.close().map_err(|(_, error)| error)?;
    Ok(Stranger::read(path)?)
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;
    use crate::checks::is_sound;

    #[test]
    fn what_is_made_is_sound_and_left_as_it_says() {
        let directory = tempfile::tempdir().unwrap();
        for (seed, left) in
            [Left::InOrder, Left::InOrderInWalMode, Left::WithWal, Left::WithHotJournal].into_iter().enumerate()
        {
            let mut rng = StdRng::seed_from_u64(seed as u64);
            let sound = make(&mut rng, directory.path(), None, left).unwrap();
            assert_eq!(sound.files.wal.as_ref().is_some_and(|wal| wal.len() > 32), left == Left::WithWal, "{left:?}");
            assert_eq!(sound.files.journal.is_some(), left == Left::WithHotJournal, "{left:?}");
            let path = directory.path().join(format!("{seed}.db"));
            sound.files.write(&path).unwrap();
            is_sound(&path).unwrap();
            // The hot journal was rolled back and deleted.
            assert!(!beside(&path, "-journal").exists());
            assert!(sound.pages.iter().any(|page| page.sort == "overflow"));
        }
    }
}
