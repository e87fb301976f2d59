//! Live queries at the edges of what SQLite reports: after each write the delivered result equals a fresh run.

use std::time::Duration;

use flatwater::options::{Inline, Journal};
use flatwater::{Database, Error, Live, Params, Value};

use super::queries::{HANGS, shown};
use crate::place::{Place, in_both_places};
use crate::support::{TestFile, run, until};

in_both_places!(a_result_follows_every_write, a_plan_that_depends_on_a_parameter_causes_no_runs_by_itself,);

/// A schema, queries, and writes after each of which the queries must deliver what a fresh run returns.
struct Case {
    schema: &'static str,
    queries: &'static [(&'static str, &'static [&'static str])],
    writes: &'static [&'static str],
}

const CASES: &[Case] = &[
    // The order of the primary key, which no statement names.
    Case {
        schema: "CREATE TABLE w (k TEXT PRIMARY KEY, v, x) WITHOUT ROWID; INSERT INTO w VALUES ('a', 1, 1), ('b', 2, 2);
                 CREATE INDEX w_x ON w (x)",
        queries: &[("SELECT v FROM w LIMIT 1", &[]), ("SELECT v FROM w WHERE x > 0 LIMIT 1", &[])],
        writes: &["UPDATE w SET k = 'c' WHERE k = 'a'", "UPDATE w SET x = 9 WHERE k = 'b'", "UPDATE w SET x = 1"],
    },
    // SQLite reports no reads of the columns of USING and NATURAL.
    Case {
        schema: "CREATE TABLE a (k, x); CREATE TABLE b (k, y); CREATE TABLE d (k INTEGER PRIMARY KEY, z);
                 CREATE VIEW j AS SELECT x, y FROM a JOIN b USING (k); CREATE VIEW n AS SELECT count(*) AS c FROM a NATURAL JOIN b;
                 CREATE VIEW jj AS SELECT x FROM j; CREATE TABLE wide (k PRIMARY KEY, y) WITHOUT ROWID;
                 INSERT INTO a VALUES (1, 10), (2, 20); INSERT INTO d VALUES (1, 1)",
        queries: &[
            ("SELECT count(*) FROM a NATURAL JOIN b", &[]),
            ("SELECT x FROM a JOIN b USING (k)", &[]),
            ("SELECT x FROM a JOIN d USING (k)", &[]),
            ("SELECT x, y FROM a LEFT JOIN b USING (k) ORDER BY x", &[]),
            ("SELECT x, y FROM a FULL JOIN b USING (k) ORDER BY x, y", &[]),
            ("SELECT y FROM j", &[]),
            ("SELECT * FROM jj", &[]),
            ("SELECT c FROM n", &[]),
            ("SELECT 1 FROM n", &[]),
            ("WITH q AS (SELECT x FROM a JOIN b USING (k)) SELECT count(*) FROM q", &[]),
            ("SELECT (SELECT count(*) FROM a JOIN wide USING (k))", &[]),
        ],
        writes: &[
            "INSERT INTO b VALUES (1, 5)",
            "UPDATE b SET k = 2",
            "UPDATE a SET k = 3 WHERE x = 20",
            "INSERT INTO wide VALUES (3, 1)",
            "INSERT INTO b VALUES (3, 5), (1, 1)",
            "UPDATE d SET k = 3",
            "UPDATE a SET k = k + 1",
            "DELETE FROM b WHERE y = 5",
            "DELETE FROM d WHERE k = 3",
            "UPDATE wide SET k = 2",
            "INSERT INTO d VALUES (2, 2)",
        ],
    },
    // The options of FTS5 may be shortened.
    Case {
        schema: "CREATE TABLE docs (id INTEGER PRIMARY KEY, body); INSERT INTO docs VALUES (1, 'one');
                 CREATE VIRTUAL TABLE f USING fts5(body, cont='docs', content_rowid='id')",
        queries: &[("SELECT body FROM f WHERE rowid = 1", &[])],
        writes: &["UPDATE docs SET body = 'two'", "DELETE FROM docs WHERE id = 1"],
    },
    // The program depends on the value of a parameter: with it, an index decides the order.
    Case {
        schema: "CREATE TABLE l (id INTEGER PRIMARY KEY, a TEXT COLLATE NOCASE, z, b); CREATE INDEX l_a ON l (a, z);
                 INSERT INTO l VALUES (1, 'ab', 1, 'first'), (2, 'ab', 2, 'second')",
        queries: &[("SELECT b FROM l WHERE a LIKE ? LIMIT 1", &["ab%"])],
        writes: &["UPDATE l SET z = 3 WHERE id = 1", "UPDATE l SET z = 0 WHERE id = 1"],
    },
    // Names that are words of SQL, that are quoted, and that differ in case.
    Case {
        schema: "CREATE TABLE \"where\" (id INTEGER PRIMARY KEY, a); CREATE TABLE \"Mixed Case\" (\"rowid\", \"\", b);
                 CREATE TABLE \"(\" (a UNIQUE, b); INSERT INTO \"where\" VALUES (1, 1), (2, 2); INSERT INTO \"(\" VALUES (1, 1), (2, 2);
                 INSERT INTO \"Mixed Case\" VALUES (1, 1, 1)",
        queries: &[
            ("SELECT count(*) FROM \"where\"", &[]),
            ("SELECT count(*) FROM \"MIXED case\"", &[]),
            ("SELECT \"rowid\", _rowid_ FROM \"mixed case\"", &[]),
            ("SELECT \"\" FROM \"mixed case\"", &[]),
            ("SELECT count(*) FROM \"(\"", &[]),
            ("SELECT a FROM \"WHERE\" WHERE id = 1", &[]),
        ],
        writes: &[
            "UPDATE \"mixed case\" SET \"rowid\" = 7",
            "UPDATE \"mixed case\" SET _rowid_ = 8",
            "UPDATE \"mixed case\" SET \"\" = 9",
            "INSERT INTO \"MIXED CASE\" VALUES (1, 2, 3)",
            "UPDATE OR REPLACE \"(\" SET a = 2 WHERE b = 1",
            "DELETE FROM \"where\" -- WHERE",
            "INSERT INTO [Where] VALUES (1, 3)",
            "DELETE FROM [where]",
            "DELETE FROM `(`",
            "DELETE FROM \"Mixed Case\" /* WHERE */ RETURNING (SELECT 1 WHERE 1)",
        ],
    },
    // Lookups by rowid with a key that is no integer parameter.
    Case {
        schema: "CREATE TABLE t (id INTEGER PRIMARY KEY, a); CREATE TABLE s (x TEXT PRIMARY KEY, id); INSERT INTO t VALUES (1, 1), (2, 2);
                 INSERT INTO s VALUES ('x', 1)",
        queries: &[
            ("SELECT a FROM t WHERE id = ?", &["1"]),
            ("SELECT a FROM t WHERE id = ? + 0", &["1"]),
            ("SELECT a FROM t WHERE id = 1.0", &[]),
            ("SELECT a FROM t WHERE id = '1'", &[]),
            ("SELECT a FROM t WHERE id = (SELECT id FROM s WHERE x = 'x')", &[]),
            ("SELECT a FROM t WHERE id = coalesce(NULL, 1)", &[]),
            ("SELECT a FROM t WHERE id IN (1, 2) AND id = 1", &[]),
            ("SELECT t.a, u.a FROM t JOIN t AS u ON u.id = t.id + 1 WHERE t.id = 1", &[]),
            ("SELECT s.x, t.a FROM s LEFT JOIN t ON t.id = 1", &[]),
            ("SELECT a FROM t WHERE id = 1 UNION ALL SELECT a FROM t WHERE id = 2", &[]),
            ("SELECT (SELECT a FROM t WHERE id = 1), (SELECT a FROM t WHERE id = 2)", &[]),
            ("SELECT a FROM t WHERE rowid = 1 AND EXISTS (SELECT 1 FROM t WHERE a = 2)", &[]),
            ("SELECT max(id) FROM t", &[]),
            ("SELECT a FROM t WHERE id = -9223372036854775808 OR id = 1", &[]),
        ],
        writes: &[
            "UPDATE t SET a = 3 WHERE id = 1",
            "UPDATE t SET a = 4 WHERE id = 2",
            "UPDATE s SET id = 2",
            "UPDATE t SET id = 5 WHERE id = 1",
            "INSERT INTO t VALUES (1, 9)",
            "REPLACE INTO t VALUES (1, 10)",
            "UPDATE t SET a = 2 WHERE id = 5",
            "DELETE FROM t WHERE id = 2",
        ],
    },
    // Tables whose triggers, keys and defaults write others.
    Case {
        schema: "CREATE TABLE p (a, b, PRIMARY KEY (a, b)); CREATE TABLE c (id INTEGER PRIMARY KEY, x DEFAULT 1, y DEFAULT 1,
                     FOREIGN KEY (x, y) REFERENCES p ON UPDATE CASCADE ON DELETE SET DEFAULT DEFERRABLE INITIALLY DEFERRED);
                 CREATE TABLE own (id INTEGER PRIMARY KEY, up REFERENCES own ON DELETE CASCADE);
                 CREATE TABLE log (n INTEGER PRIMARY KEY AUTOINCREMENT, what);
                 CREATE TABLE k (id INTEGER PRIMARY KEY REFERENCES own ON DELETE CASCADE ON UPDATE CASCADE) WITHOUT ROWID;
                 CREATE VIEW v AS SELECT id, up FROM own;
                 CREATE TRIGGER v_u INSTEAD OF UPDATE OF up ON v BEGIN INSERT INTO log (what) VALUES (new.up); END;
                 CREATE TRIGGER v_d INSTEAD OF DELETE ON v BEGIN DELETE FROM log; END;
                 CREATE TRIGGER l AFTER INSERT ON log WHEN new.what > 5 BEGIN INSERT INTO v_target SELECT n, what FROM log; END;
                 CREATE TABLE v_target (a, b);
                 INSERT INTO p VALUES (1, 1), (2, 2); INSERT INTO c VALUES (1, 2, 2); INSERT INTO own VALUES (1, NULL), (2, 1), (3, 2);
                 INSERT INTO k VALUES (1), (3)",
        queries: &[
            ("SELECT x, y FROM c WHERE id = 1", &[]),
            ("SELECT group_concat(id) FROM own", &[]),
            ("SELECT id FROM k", &[]),
            ("SELECT count(*) FROM log", &[]),
            ("SELECT seq FROM sqlite_sequence WHERE name = 'log'", &[]),
            ("SELECT a, b FROM v_target", &[]),
            ("SELECT count(*) FROM v_target WHERE a IN k", &[]),
        ],
        writes: &[
            "UPDATE p SET a = 3 WHERE a = 2",
            "DELETE FROM p WHERE a = 3",
            "UPDATE own SET id = 7 WHERE id = 3",
            "UPDATE v SET up = 9 WHERE id = 1",
            "UPDATE v SET up = 3",
            "DELETE FROM own WHERE id = 1",
            "DELETE FROM v",
            "INSERT INTO own VALUES (4, NULL)",
            "DELETE FROM v",
            "DELETE FROM v_target",
            "INSERT INTO v_target SELECT * FROM p",
        ],
    },
    // R-Trees, rows that move between tables at once, and indexes in their order.
    Case {
        schema: "CREATE VIRTUAL TABLE r USING rtree(id, x0, x1, +note); CREATE TABLE e (a, b); CREATE TABLE src (a, b);
                 CREATE INDEX e_b ON e (b); INSERT INTO src VALUES (1, 2), (2, 1); INSERT INTO r VALUES (1, 0, 1, 'n')",
        queries: &[
            ("SELECT note FROM r WHERE x0 > -1", &[]),
            ("SELECT count(*) FROM r", &[]),
            ("SELECT a FROM e INDEXED BY e_b WHERE b > 0 LIMIT 1", &[]),
            ("SELECT max(b) FROM e", &[]),
            ("SELECT DISTINCT b FROM e", &[]),
            ("SELECT a, row_number() OVER (ORDER BY b) FROM e", &[]),
        ],
        writes: &[
            "INSERT INTO e SELECT * FROM src",
            "UPDATE r SET note = 'm' WHERE id = 1",
            "INSERT INTO r VALUES (2, 5, 6, 'o')",
            "UPDATE e SET b = 9 WHERE a = 2",
            "UPDATE e SET a = src.b + 10 FROM src WHERE e.a = src.a",
            "DELETE FROM r WHERE id = 1",
            "DELETE FROM r",
            "DELETE FROM e",
        ],
    },
];

/// A live query, and the last result that it delivered.
struct Watched {
    sql: String,
    params: Params,
    live: Live,
    last: Option<String>,
}

impl Watched {
    fn new(db: &Database, sql: &str, params: &[&str]) -> Self {
        let params = Params::positional(params.iter().map(|text| Value::from((*text).to_owned()))).unwrap();
        Self { sql: sql.to_owned(), live: db.live(sql, params.clone()), params, last: None }
    }

    /// Waits until the query has delivered what a fresh run returns. Returns what is wrong if it does not.
    async fn differs(&mut self, db: &Database, after: &str) -> Option<String> {
        let fresh = shown(&db.query(&self.sql, self.params.clone()).await.unwrap());
        while self.last.as_ref() != Some(&fresh) {
            let Ok(next) = tokio::time::timeout(HANGS, self.live.next()).await else {
                return Some(format!("{}, after {after}: {:?} and not {fresh:?}", self.sql, self.last));
            };
            self.last = Some(shown(&next.expect("the stream is over").unwrap()));
        }
        None
    }

    async fn agrees(&mut self, db: &Database, after: &str) {
        assert_eq!(self.differs(db, after).await, None);
    }
}

async fn a_result_follows_every_write(place: &Place) {
    let mut wrong = Vec::new();
    for Case { schema, queries, writes } in CASES {
        let place = place.another();
        let db = place.open().await;
        db.execute_script(schema).await.unwrap();
        let mut all: Vec<_> = queries.iter().map(|(sql, params)| Watched::new(&db, sql, params)).collect();
        for sql in ["SELECT 1"].iter().chain(*writes) {
            db.execute_script(sql).await.unwrap();
            for watched in &mut all {
                wrong.extend(watched.differs(&db, sql).await);
            }
        }
        drop(all);
        db.close().await.unwrap();
        place.file().inspect(|file| file.violates_foreign_keys());
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// SQLite prepares a text again when a parameter that decides its plan has another value.
async fn a_plan_that_depends_on_a_parameter_causes_no_runs_by_itself(place: &Place) {
    let db = place.open().await;
    db.execute_script(
        "CREATE TABLE t (a TEXT COLLATE NOCASE, b); CREATE INDEX t_a ON t (a); INSERT INTO t VALUES ('ab', 1)",
    )
    .await
    .unwrap();
    let mut watched = Watched::new(&db, "SELECT b FROM t WHERE a LIKE ?", &["ab%"]);
    watched.agrees(&db, "the first run").await;
    db.execute("UPDATE t SET b = 2", ()).await.unwrap();
    watched.agrees(&db, "an update").await;
    let runs = db.stats().live.runs;
    for _ in 0..50 {
        db.query("SELECT 1", ()).await.unwrap();
    }
    assert!(db.stats().live.runs <= runs + 1, "it runs for ever");
}

#[test]
fn a_query_of_an_attached_file_follows_the_writes_to_it() {
    let (place, other) = (Place::on_file(), TestFile::new());
    place.check(async |place: &Place| {
        let db = place.options().tuning(|t| t.attach("other", other.path())).open().await.unwrap();
        db.execute_script("CREATE TABLE other.o (a); CREATE TABLE t (a)").await.unwrap();
        let mut watched = Watched::new(&db, "SELECT sum(a) FROM other.o", &[]);
        watched.agrees(&db, "the first run").await;
        for sql in ["INSERT INTO other.o VALUES (1)", "UPDATE other.o SET a = 2", "DELETE FROM other.o"] {
            db.execute(sql, ()).await.unwrap();
            watched.agrees(&db, sql).await;
        }
        let tx = db.begin().await.unwrap();
        tx.execute("INSERT INTO other.o VALUES (5)", ()).await.unwrap();
        tx.commit().await.unwrap();
        watched.agrees(&db, "a transaction").await;
        db.write_with(|tx| tx.execute("UPDATE other.o SET a = 7", []).map_err(Error::from)).await.unwrap();
        watched.agrees(&db, "a closure").await;
        drop(watched);
        db.close().await.unwrap();
    });
}

/// The names and root pages of one file mean something else in another.
#[test]
fn tables_of_two_files_with_equal_names_are_told_apart() {
    let (place, other) = (Place::on_file(), TestFile::new());
    place.check(async |place: &Place| {
        let db = place.options().tuning(|t| t.attach("other", other.path())).open().await.unwrap();
        for schema in ["main", "other"] {
            let tables = format!("CREATE TABLE {schema}.o (a); CREATE VIRTUAL TABLE {schema}.f USING fts5(body)");
            db.execute_script(&tables).await.unwrap();
        }
        let mut all: Vec<_> =
            ["SELECT sum(a) FROM other.o", "SELECT sum(a) FROM main.o", "SELECT count(*) FROM other.f"]
                .map(|sql| Watched::new(&db, sql, &[]))
                .into();
        for sql in [
            "SELECT 1",
            "INSERT INTO other.o VALUES (1)",
            "INSERT INTO main.o VALUES (2)",
            "INSERT INTO other.f VALUES ('word')",
            "UPDATE other.o SET a = 3",
            "DELETE FROM other.f",
        ] {
            db.execute_script(sql).await.unwrap();
            for watched in &mut all {
                watched.agrees(&db, sql).await;
            }
        }
        drop(all);
        db.close().await.unwrap();
    });
}

#[test]
fn commits_of_others_to_an_attached_file_alone_are_noticed() {
    let (place, other) = (Place::on_file(), TestFile::new());
    place.check(async |place: &Place| {
        // An attached file keeps its journal mode.
        let plain = other.plain();
        plain.execute_batch("PRAGMA journal_mode = wal; CREATE TABLE o (a)").unwrap();
        let db = place.options().tuning(|t| t.attach("other", other.path())).open().await.unwrap();
        db.execute("CREATE TABLE t (a)", ()).await.unwrap();
        let mut watched = Watched::new(&db, "SELECT sum(a) FROM other.o", &[]);
        let mut of_main = Watched::new(&db, "SELECT count(*) FROM t", &[]);
        watched.agrees(&db, "the first run").await;
        of_main.agrees(&db, "the first run").await;
        for value in 1..4 {
            plain.execute_batch(&format!("INSERT INTO o VALUES ({value})")).unwrap();
            watched.agrees(&db, "a commit of another").await;
            db.execute("INSERT INTO other.o VALUES (10)", ()).await.unwrap();
            watched.agrees(&db, "a commit of this database").await;
        }
        // Nothing is published again and again.
        until(|| db.stats().live.pending == 0).await;
        let runs = db.stats().live.runs;
        db.execute("INSERT INTO t VALUES (1)", ()).await.unwrap();
        of_main.agrees(&db, "a commit to the main file").await;
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert!(db.stats().live.runs <= runs + 3, "it runs for ever");
        drop((watched, of_main));
        db.close().await.unwrap();
    });
}

/// SQLite prepares a statement again when another process has changed the schema, and may write more than before.
#[test]
fn what_a_statement_writes_by_a_trigger_of_another_process_is_seen() {
    for inline in [Inline::default(), Inline::Never] {
        Place::on_file().check(async |place: &Place| {
            let (db, plain) =
                (place.options().tuning(|t| t.inline(inline)).open().await.unwrap(), place.file().unwrap().plain());
            db.execute_script("CREATE TABLE t (a); CREATE TABLE log (n); INSERT INTO t VALUES (0)").await.unwrap();
            for _ in 0..20 {
                db.execute("UPDATE t SET a = a + 1", ()).await.unwrap();
            }
            db.execute("INSERT INTO log VALUES (1)", ()).await.unwrap();
            let mut watched = Watched::new(&db, "SELECT count(*) FROM log", &[]);
            watched.agrees(&db, "the first run").await;
            let seen = db.stats().live.everything;
            plain.execute_batch("CREATE TRIGGER clears AFTER UPDATE ON t BEGIN DELETE FROM log; END").unwrap();
            until(|| db.stats().live.everything > seen && db.stats().live.pending == 0).await;
            db.execute("UPDATE t SET a = a + 1", ()).await.unwrap();
            watched.agrees(&db, "the first use after another schema").await;
            drop(watched);
            db.close().await.unwrap();
        });
    }
}

#[test]
fn without_a_wal_the_next_write_notices_commits_of_others_and_their_schema() {
    let file = TestFile::new();
    let plain = file.plain();
    plain
        .execute_batch(
            "PRAGMA journal_mode = delete; CREATE TABLE t (a); CREATE TABLE u (a); CREATE TABLE other (a);
             CREATE VIEW v AS SELECT a FROM t; INSERT INTO t VALUES (1); INSERT INTO u VALUES (2)",
        )
        .unwrap();
    run(async {
        let db = file.options().journal(Journal::Keep).open().await.unwrap();
        let (mut t, mut v) = (Watched::new(&db, "SELECT a FROM t", &[]), Watched::new(&db, "SELECT a FROM v", &[]));
        t.agrees(&db, "the first run").await;
        v.agrees(&db, "the first run").await;
        plain.execute_batch("UPDATE t SET a = 5").unwrap();
        db.execute("INSERT INTO other VALUES (1)", ()).await.unwrap();
        t.agrees(&db, "a commit of another").await;
        v.agrees(&db, "a commit of another").await;
        db.execute_script("DROP VIEW v; CREATE VIEW v AS SELECT a FROM u").await.unwrap();
        v.agrees(&db, "another view").await;
        db.execute("UPDATE u SET a = 3", ()).await.unwrap();
        v.agrees(&db, "a write to the table of the new view").await;
        plain.execute_batch("DROP VIEW v; CREATE VIEW v AS SELECT a FROM t").unwrap();
        db.execute("INSERT INTO other VALUES (1)", ()).await.unwrap();
        v.agrees(&db, "another view of another").await;
        db.execute("UPDATE t SET a = 4", ()).await.unwrap();
        v.agrees(&db, "a write to its table").await;
        drop((t, v));
        db.close().await.unwrap();
    });
}

#[test]
fn a_view_that_another_process_defined_anew_is_followed() {
    Place::on_file().check(async |place: &Place| {
        let (db, plain) = (place.open().await, place.file().unwrap().plain());
        db.execute_script("CREATE TABLE t (a); CREATE TABLE u (a); CREATE VIEW v AS SELECT a FROM t").await.unwrap();
        let mut watched = Watched::new(&db, "SELECT sum(a) FROM v", &[]);
        watched.agrees(&db, "the first run").await;
        for (table, other) in [("u", "t"), ("t", "u"), ("u", "t")] {
            plain
                .execute_batch(&format!("BEGIN; DROP VIEW v; CREATE VIEW v AS SELECT a FROM {table}; COMMIT"))
                .unwrap();
            for table in [table, other] {
                db.execute(format!("INSERT INTO {table} VALUES (1)"), ()).await.unwrap();
                watched.agrees(&db, table).await;
            }
        }
    });
}

/// After a closure that left its connection in disorder, the writer has none until its next use.
#[test]
fn commits_of_others_are_noticed_while_the_writer_has_no_connection() {
    Place::on_file().check(async |place: &Place| {
        let (db, plain) = (place.open().await, place.file().unwrap().plain());
        db.execute_script("CREATE TABLE t (a)").await.unwrap();
        let mut watched = Watched::new(&db, "SELECT sum(a) FROM t", &[]);
        watched.agrees(&db, "the first run").await;
        let left = |c: &rusqlite::Connection| {
            let mut statement = c.prepare("SELECT 1 UNION SELECT 2").unwrap();
            let mut rows = statement.query([]).unwrap();
            rows.next().unwrap();
            std::mem::forget(rows);
            std::mem::forget(statement);
            Ok::<(), Error>(())
        };
        db.write_with(move |tx| left(tx)).await.unwrap();
        assert_eq!(db.stats().replaced_connections, 1);
        plain.execute_batch("INSERT INTO t VALUES (1)").unwrap();
        watched.agrees(&db, "a commit of another").await;
    });
}

/// A query that failed for good leaves nothing that looks for commits.
#[test]
fn nothing_is_recorded_when_the_last_query_was_refused() {
    Place::on_file().check(async |place: &Place| {
        let (db, plain) = (place.open().await, place.file().unwrap().plain());
        db.execute_script("CREATE TABLE t (a)").await.unwrap();
        let mut refused = db.live("INSERT INTO t VALUES (1)", ());
        refused.next().await.unwrap().unwrap_err();
        assert!(refused.next().await.is_none());
        drop(refused);
        until(|| db.stats().live.queries == 0).await;
        plain.execute_batch("INSERT INTO t VALUES (1)").unwrap();
        // Longer than it would look for the commit.
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert_eq!(db.stats().live.everything, 0);
    });
}
