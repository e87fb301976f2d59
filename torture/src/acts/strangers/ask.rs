//! The questions for a damaged database, the same for both sides and in the same order.
//!
//! Owns: reads of every table by rowid and by each index, SQLite's own checks, and writes of each kind.

/// One statement, or several that belong together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Ask {
    Read(String),
    /// One of SQLite's checks, which reports its findings in the order in which the connection loaded the tables.
    Check(String),
    Write(String),
    /// Several statements in one batch, all or nothing.
    Batch(Vec<String>),
    /// An interactive transaction; the flag says whether it commits.
    Transaction(Vec<String>, bool),
    Checkpoint,
    /// A query that never ends by itself. It must return in time with any result; the results are not compared.
    Endless(String),
}

impl Ask {
    pub(super) fn is_write(&self) -> bool {
        matches!(self, Self::Write(_) | Self::Batch(_) | Self::Transaction(..) | Self::Checkpoint)
    }
}

/// The limits are high enough to find everything: the order of the findings may differ.
const CHECKS: &[&str] = &["PRAGMA foreign_key_check", "PRAGMA quick_check(1000000)", "PRAGMA integrity_check(1000000)"];

fn reads(texts: &[&str]) -> Vec<Ask> {
    texts.iter().map(|text| Ask::Read((*text).to_owned())).collect()
}

/// Returns all reads. Point queries occur three times: from the second time on they may run inline.
pub(super) fn all_reads() -> Vec<Ask> {
    let mut all = reads(&[
        "SELECT type, name, tbl_name, rootpage, sql FROM sqlite_schema",
        "SELECT * FROM item NOT INDEXED ORDER BY rowid",
        "SELECT * FROM item NOT INDEXED ORDER BY rowid DESC",
        "SELECT a, id FROM item INDEXED BY item_a WHERE a >= 0 ORDER BY a, id",
        "SELECT b, a, c FROM item INDEXED BY item_b WHERE b >= '' COLLATE NOCASE ORDER BY b COLLATE NOCASE, a DESC",
        "SELECT a, b FROM item INDEXED BY item_some WHERE a > 500 ORDER BY a, id",
        "SELECT length(b), id FROM item INDEXED BY item_length WHERE length(b) > 3 ORDER BY length(b), id",
        "SELECT count(*) FROM item",
        "SELECT max(a), min(b), sum(length(c)), avg(a) FROM item",
        "SELECT k, v FROM word ORDER BY k",
        "SELECT v, k FROM word INDEXED BY word_v WHERE v > 100 ORDER BY v, k",
        "SELECT count(*) FROM word",
        "SELECT id, body FROM long ORDER BY id",
        "SELECT id, length(body) FROM long ORDER BY id",
        "SELECT sum(length(hex(body))) FROM long",
        "SELECT id, x, twice, more FROM counted ORDER BY id",
        "SELECT more, twice FROM counted INDEXED BY counted_more WHERE more > 0 ORDER BY more, id",
        "SELECT x FROM counted ORDER BY x",
        "SELECT child.id, item.a FROM child JOIN item ON item.id = child.item ORDER BY child.id",
        "SELECT count(*) FROM child INDEXED BY child_item WHERE item > 10",
        "SELECT rowid, * FROM typed ORDER BY rowid",
        "SELECT * FROM seen ORDER BY id",
        "SELECT * FROM log ORDER BY rowid",
        "SELECT rowid, body FROM note ORDER BY rowid",
        "SELECT rowid FROM note WHERE note MATCH 'mole* OR ada*' ORDER BY rowid",
        "SELECT * FROM box WHERE x0 > 100 AND x1 < 600 ORDER BY id",
        "SELECT * FROM sqlite_sequence",
        "PRAGMA page_count",
        "PRAGMA freelist_count",
        "PRAGMA schema_version",
        "PRAGMA user_version",
        "PRAGMA encoding",
        "SELECT * FROM pragma_table_list ORDER BY schema, name",
        "PRAGMA table_xinfo(item)",
    ]);
    all.extend(CHECKS.iter().map(|text| Ask::Check((*text).to_owned())));
    for _ in 0..3 {
        for id in [1, 2, 77, 300] {
            all.push(Ask::Read(format!("SELECT a, b, c FROM item WHERE id = {id}")));
        }
        all.extend(reads(&[
            "SELECT v FROM word WHERE k = 'ada7'",
            "SELECT body FROM long WHERE id = 3",
            "SELECT id FROM item WHERE a = 77 ORDER BY id",
        ]));
    }
    all
}

/// Returns writes of each kind, from small ones to one that changes everything.
pub(super) fn all_writes() -> Vec<Ask> {
    let write = |text: &str| Ask::Write(text.to_owned());
    let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
    let mut all = Vec::new();
    for id in 5001..5005 {
        all.push(Ask::Write(format!("INSERT INTO item (id, a, b) VALUES ({id}, {}, 'new')", id % 1000)));
        all.push(Ask::Write("INSERT INTO typed VALUES (1, 'one', 1.5)".to_owned()));
    }
    all.extend([
        write("INSERT INTO long (body) VALUES (zeroblob(100000))"),
        write("UPDATE item SET a = a + 1 WHERE id = 77"),
        write("UPDATE item SET a = a + 1, b = b || 'x' WHERE id % 7 = 3"),
        write("UPDATE word SET v = v + 1 WHERE k > 'm'"),
        write("REPLACE INTO word VALUES ('ada7', 7)"),
        write("INSERT INTO counted (x) VALUES (4711)"),
        write("INSERT INTO note VALUES ('a mole in the house')"),
        write("INSERT INTO box VALUES (9001, 5, 6)"),
        Ask::Transaction(texts(&["DELETE FROM long WHERE id < 4", "INSERT INTO log VALUES ('in', 1)"]), true),
        Ask::Transaction(texts(&["DELETE FROM item WHERE id > 20", "UPDATE word SET v = 0"]), false),
        Ask::Batch(texts(&["INSERT INTO log VALUES ('batch', 2)", "DELETE FROM child WHERE id % 3 = 0"])),
        Ask::Checkpoint,
        write("DELETE FROM item WHERE id % 4 = 1"),
        write("DELETE FROM note WHERE rowid > 60"),
        write("DELETE FROM long"),
        write("CREATE TABLE another (a PRIMARY KEY, b)"),
        write("INSERT INTO another SELECT id, zeroblob(400) FROM item"),
        write("CREATE INDEX item_c ON item (c)"),
        write("DROP INDEX item_b"),
        write("REINDEX"),
        write("ANALYZE"),
        write("PRAGMA user_version = 9"),
        write("DROP TABLE word"),
        write("DROP TABLE note"),
        write("ALTER TABLE typed ADD COLUMN d"),
        write("VACUUM"),
        Ask::Checkpoint,
    ]);
    all
}
