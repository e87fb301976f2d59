//! Random histories of writes: when nothing is written any more, the last result of every live query equals a fresh run.
//!
//! The writers are this database, a plain connection of the same process, and another process. `FLATWATER_SEED` repeats
//! one history, `FLATWATER_HISTORIES` sets the number of histories.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{ChildStdin, ChildStdout, Stdio};

use flatwater::options::Inline;
use flatwater::{Database, Error, Params, Value};
use futures_util::FutureExt;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::place::Place;
use crate::support::{Killed, TestFile, as_child, run};

pub(crate) const SCHEMA: &str = "
    CREATE TABLE t (id INTEGER PRIMARY KEY, a, b, c UNIQUE);
    CREATE TABLE w (k TEXT PRIMARY KEY, v, n) WITHOUT ROWID;
    CREATE TABLE g (id INTEGER PRIMARY KEY, a, twice AS (a * 2), kept AS (a + 1) STORED);
    CREATE TABLE p (id INTEGER PRIMARY KEY, a);
    CREATE TABLE c (id INTEGER PRIMARY KEY, p REFERENCES p ON DELETE CASCADE ON UPDATE CASCADE, q REFERENCES p ON DELETE SET NULL);
    CREATE TABLE log (n, what);
    CREATE TABLE plain (a, b);
    CREATE INDEX t_b ON t (b, a);
    CREATE INDEX t_part ON t (a) WHERE b > 5;
    CREATE INDEX plain_e ON plain (a + b);
    CREATE TRIGGER t_logs AFTER INSERT ON t BEGIN INSERT INTO log VALUES (new.id, 'new'); END;
    CREATE TRIGGER t_clears AFTER UPDATE OF b ON t WHEN new.b = 9 BEGIN DELETE FROM log; END;
    CREATE TRIGGER t_moves AFTER DELETE ON t BEGIN UPDATE plain SET b = b + 1 WHERE a = old.id; END;
    CREATE VIEW v AS SELECT id, a FROM t WHERE b > 3;
    CREATE TRIGGER v_in INSTEAD OF INSERT ON v BEGIN INSERT INTO plain VALUES (new.id, new.a); END;
    CREATE VIRTUAL TABLE f USING fts5(body);
    CREATE VIRTUAL TABLE box USING rtree(id, a, b);
    CREATE VIRTUAL TABLE x USING fts5(a, content='t', content_rowid='id');
    CREATE TABLE auto (id INTEGER PRIMARY KEY AUTOINCREMENT, a);
    CREATE TABLE named (k INTEGER PRIMARY KEY, a, name TEXT COLLATE NOCASE UNIQUE);
    CREATE TABLE other_named (k, a TEXT COLLATE NOCASE, z);
    CREATE INDEX other_named_a ON other_named (a, z);
    CREATE TABLE strict (id INT PRIMARY KEY ON CONFLICT IGNORE, a INTEGER, UNIQUE (a, id)) STRICT, WITHOUT ROWID;
    CREATE VIEW both AS SELECT k, name, z FROM named JOIN other_named USING (k);
    CREATE VIEW moving AS SELECT a FROM named;
    CREATE TRIGGER auto_n AFTER INSERT ON auto BEGIN INSERT INTO named VALUES (new.a, new.id, new.id) ON CONFLICT DO UPDATE SET a = a + 1; END;";

/// In an attached file, if there is one.
const ATTACHED: &str = "CREATE TABLE other.o (id INTEGER PRIMARY KEY, a)";

/// Each with its number of small integers as parameters.
pub(crate) const WRITES: &[&str] = &[
    "INSERT OR IGNORE INTO box VALUES (?, 1, 1 + ?)",
    "INSERT INTO box VALUES (?, 1, 1 + ?)",
    "UPDATE box SET b = 1 + ? WHERE id = ?",
    "DELETE FROM box WHERE id = ?",
    "INSERT INTO t VALUES (?, ?, ?, ?)",
    "INSERT OR IGNORE INTO t VALUES (?, ?, ?, ?)",
    "INSERT OR REPLACE INTO t VALUES (?, ?, ?, ?)",
    "INSERT INTO t (id, a, b, c) VALUES (?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET a = excluded.a",
    "UPDATE t SET a = ? WHERE id = ?",
    "UPDATE t SET b = ? WHERE id = ?",
    "UPDATE t SET c = ? WHERE id = ?",
    "UPDATE OR REPLACE t SET c = ? WHERE id = ?",
    "UPDATE t SET id = ? WHERE id = ?",
    "UPDATE t SET rowid = ? WHERE a = ?",
    "UPDATE t SET a = a + 1 WHERE b = ?",
    "DELETE FROM t WHERE id = ?",
    "DELETE FROM t WHERE a > ?",
    "DELETE FROM t",
    "INSERT OR REPLACE INTO w VALUES (?, ?, ?)",
    "UPDATE w SET v = ? WHERE k = ?",
    "DELETE FROM w WHERE n = ?",
    "DELETE FROM w",
    "INSERT INTO g (id, a) VALUES (?, ?) ON CONFLICT DO NOTHING",
    "UPDATE g SET a = ? WHERE id = ?",
    "DELETE FROM g WHERE a = ?",
    "INSERT OR IGNORE INTO p VALUES (?, ?)",
    "UPDATE p SET id = ? WHERE id = ?",
    "UPDATE p SET a = ? WHERE id = ?",
    "DELETE FROM p WHERE id = ?",
    "INSERT INTO c (p, q) VALUES (?, ?)",
    "UPDATE c SET q = ? WHERE id = ?",
    "INSERT INTO plain VALUES (?, ?)",
    "INSERT INTO plain SELECT id, a FROM t WHERE a > ?",
    "UPDATE plain SET a = ? WHERE rowid = ?",
    "DELETE FROM plain",
    "DELETE FROM log WHERE n = ?",
    "INSERT INTO v VALUES (?, ?)",
    "INSERT INTO f (rowid, body) VALUES (?, 'word ' || ?)",
    "UPDATE f SET body = 'other ' || ? WHERE rowid = ?",
    "DELETE FROM f WHERE rowid = ?",
    "UPDATE t SET a = ? WHERE id = ? RETURNING a",
    "INSERT INTO x (x) VALUES ('rebuild')",
    "INSERT INTO auto (a) VALUES (?)",
    "DELETE FROM auto",
    "INSERT INTO named (k, a, name) VALUES (?, ?, ?)",
    "INSERT OR REPLACE INTO named (k, a, name) VALUES (?, ?, ?)",
    "UPDATE named SET k = ? WHERE a = ?",
    "UPDATE named SET name = ? WHERE k = ?",
    "UPDATE named SET a = other_named.z FROM other_named WHERE named.k = other_named.k AND z > ?",
    "DELETE FROM named WHERE name = ?",
    "INSERT INTO other_named VALUES (?, ?, ?)",
    "INSERT INTO other_named SELECT k, name, a FROM named",
    "UPDATE other_named SET k = ? WHERE k = ?",
    "UPDATE other_named SET z = ? WHERE a = ?",
    "DELETE FROM other_named WHERE a LIKE ?",
    "DELETE FROM other_named",
    "INSERT INTO strict VALUES (?, ?)",
    "UPDATE strict SET id = ? WHERE a = ?",
    "UPDATE strict SET a = ? WHERE id = ?",
    "INSERT INTO other.o VALUES (?, ?)",
    "UPDATE other.o SET a = ? WHERE id = ?",
    "DELETE FROM other.o",
    "UPDATE t SET c = CASE id WHEN ? THEN c + 100 ELSE c END WHERE b > ?",
];

/// The statistics are made anew, so that all connections load them: with others they would have other plans, and rows in
/// another order.
const ANALYZE: &str = "DROP TABLE IF EXISTS main.sqlite_stat1; ANALYZE main";

pub(crate) const DEFINITIONS: &[&str] = &[
    "CREATE INDEX IF NOT EXISTS late ON t (a, c)",
    "DROP INDEX IF EXISTS late",
    "CREATE TABLE IF NOT EXISTS sometimes (id INTEGER PRIMARY KEY, a)",
    "DROP TABLE IF EXISTS sometimes",
    "ALTER TABLE plain ADD COLUMN more DEFAULT 3",
    "ALTER TABLE plain DROP COLUMN more",
    "CREATE TRIGGER IF NOT EXISTS g_in AFTER UPDATE ON g BEGIN INSERT OR REPLACE INTO t VALUES (new.id, 1, 1, new.a); END",
    "DROP TRIGGER IF EXISTS g_in",
    ANALYZE,
    "VACUUM",
    "REINDEX",
    "DROP VIEW moving",
    "CREATE VIEW moving AS SELECT a FROM other_named",
    "CREATE VIEW moving AS SELECT b AS a FROM t",
    "ALTER TABLE named RENAME COLUMN a TO b",
    "ALTER TABLE named RENAME COLUMN b TO a",
    "CREATE UNIQUE INDEX IF NOT EXISTS plain_u ON plain (b, a)",
    "DROP INDEX IF EXISTS plain_u",
];

const QUERIES: &[&str] = &[
    "SELECT id FROM box WHERE b > ? ORDER BY id",
    "SELECT b FROM box WHERE id = ?",
    "SELECT count(*) FROM box",
    "SELECT * FROM t WHERE id = ?",
    "SELECT a FROM t WHERE id = ?",
    "SELECT t.a, p.a FROM t, p WHERE t.id = ? AND p.id = ?",
    "SELECT a FROM t WHERE id = 3",
    "SELECT a FROM t WHERE id = ? OR id = ?",
    "SELECT a, b FROM t WHERE b > ? ORDER BY b, a, id",
    "SELECT b FROM t WHERE c = ?",
    "SELECT a FROM t WHERE rowid BETWEEN ? AND 9 ORDER BY id",
    "SELECT count(*) FROM t",
    "SELECT sum(a), max(c) FROM t WHERE b > 5 AND a > ?",
    "SELECT id FROM t ORDER BY b DESC, id LIMIT 3",
    "SELECT EXISTS (SELECT 1 FROM t WHERE a = ?)",
    "SELECT * FROM v ORDER BY id",
    "SELECT v FROM w WHERE k = ?",
    "SELECT count(*), sum(n) FROM w",
    "SELECT twice, kept FROM g WHERE id = ?",
    "SELECT sum(kept) FROM g",
    "SELECT p.id, count(c.id) FROM p LEFT JOIN c ON c.p = p.id GROUP BY p.id ORDER BY p.id",
    "SELECT id, p, q FROM c ORDER BY id",
    "SELECT a FROM p WHERE id = (SELECT max(p) FROM c)",
    "SELECT n, what FROM log ORDER BY rowid",
    "SELECT a, b FROM plain WHERE a + b > ? ORDER BY rowid",
    "SELECT * FROM plain WHERE rowid = ?",
    "SELECT rowid FROM f WHERE f MATCH 'word' ORDER BY rowid",
    "SELECT body FROM f WHERE rowid = ?",
    "SELECT * FROM sometimes",
    "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 3) SELECT x, (SELECT a FROM t WHERE id = x) FROM n",
    "SELECT value, (SELECT count(*) FROM plain WHERE a = value) FROM json_each('[1,2,3]')",
    "SELECT name FROM sqlite_schema ORDER BY name",
    "SELECT a FROM t WHERE id IN (SELECT id FROM g WHERE a > ?) ORDER BY id",
    "SELECT a FROM t EXCEPT SELECT a FROM p ORDER BY 1",
    "SELECT a FROM x WHERE rowid = ?",
    "SELECT max(id), sum(a) FROM auto",
    "SELECT name, seq FROM sqlite_sequence ORDER BY name",
    "SELECT * FROM named WHERE name = ?",
    "SELECT a FROM named WHERE k = ?",
    "SELECT a FROM t WHERE c IS ?",
    "SELECT a, b FROM t WHERE c = ? AND id = ?",
    "SELECT t.a, named.a FROM t LEFT JOIN named ON named.k = t.id WHERE t.c = ?",
    "SELECT count(*) FROM named NATURAL JOIN other_named",
    "SELECT name FROM named JOIN other_named USING (k) ORDER BY name, z",
    "SELECT z FROM both ORDER BY z",
    "SELECT count(*) FROM both",
    "SELECT a FROM moving ORDER BY a",
    "SELECT z, k FROM other_named WHERE a LIKE ? LIMIT 2",
    "SELECT k FROM other_named WHERE a > ? LIMIT 2",
    "SELECT a FROM strict LIMIT 2",
    "SELECT id FROM strict WHERE a > ? LIMIT 2",
    "SELECT v FROM w LIMIT 2",
    "SELECT sum(a) FROM other.o",
    "SELECT a FROM other.o WHERE id = ?",
    "SELECT a FROM plain WHERE b = ? AND a = ?",
    "SELECT group_concat(a) FROM (SELECT a FROM t ORDER BY b LIMIT 4)",
    "SELECT a, rank() OVER (ORDER BY b) FROM t ORDER BY id",
];

pub(crate) fn values(random: &mut StdRng, sql: &str) -> Vec<Value> {
    (0..sql.matches('?').count()).map(|_| Value::Integer(random.random_range(0..10))).collect()
}

/// Values of all types but blobs, most of them equal to some integer.
fn mixed(random: &mut StdRng, sql: &str) -> Vec<Value> {
    let mut value = || {
        let number = random.random_range(0..10);
        match random.random_range(0..12) {
            0 => Value::Null,
            1 => Value::Real(number.into()),
            2 => Value::Text(number.to_string()),
            3 => Value::Text(format!("{}%", number / 3)),
            _ => Value::Integer(number.into()),
        }
    };
    (0..sql.matches('?').count()).map(|_| value()).collect()
}

pub(crate) fn pick<'a>(random: &mut StdRng, from: &[&'a str]) -> &'a str {
    from[random.random_range(0..from.len())]
}

/// Another process with a plain connection: runs each line, and answers when it is done.
struct Another {
    _child: Killed,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
}

impl Another {
    fn start(file: &TestFile) -> Self {
        let mut command = as_child("live::random::another_process");
        command.env("FLATWATER_TEST_FILE", file.path()).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (to, from) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        Self { _child: Killed(child), to, from }
    }

    fn run(&mut self, sql: &str) {
        writeln!(self.to, "{sql}").unwrap();
        for line in self.from.by_ref().lines() {
            if line.unwrap().ends_with("done") {
                return;
            }
        }
        panic!("the other process ended");
    }
}

#[test]
#[ignore = "the child of another test"]
fn another_process() {
    let connection = rusqlite::Connection::open(std::env::var_os("FLATWATER_TEST_FILE").unwrap()).unwrap();
    for line in std::io::stdin().lines() {
        // What fails there fails here.
        let _ = connection.execute_batch(&line.unwrap());
        println!("done");
    }
}

/// Returns the text with its parameters in it.
pub(crate) fn spelled(sql: &str, values: &[Value]) -> String {
    let mut values = values.iter();
    let value = |part: &str| match values.next() {
        Some(Value::Integer(value)) => format!("{part}{value}"),
        Some(Value::Real(value)) => format!("{part}{value:?}"),
        Some(Value::Text(value)) => format!("{part}'{value}'"),
        Some(_) => format!("{part}NULL"),
        None => part.to_owned(),
    };
    sql.split('?').map(value).collect()
}

pub(crate) async fn write(db: &Database, random: &mut StdRng) {
    let sql = pick(random, WRITES);
    let params = mixed(random, sql);
    // Constraints fail, and the same statements fail in a transaction.
    let _ = match random.random_range(0..15) {
        0 => {
            let sql = spelled(sql, &params);
            db.write_with(move |tx| tx.execute_batch(&sql).map_err(Error::from)).await
        }
        1 => db.execute_script(spelled(sql, &params)).await,
        2 => transaction(db, random).await,
        3 => match pick(random, DEFINITIONS) {
            ANALYZE => db.execute_script(ANALYZE).await,
            sql => db.execute(sql, ()).await.map(drop),
        },
        4 if sql.starts_with("INSERT INTO plain VALUES") => db.execute_many(sql, [(1, 2), (3, 4)]).await.map(drop),
        8 => {
            let statements: Vec<_> = (0..random.random_range(1..4)).map(|_| pick(random, WRITES)).collect();
            let batch = statements.iter().map(|sql| (*sql, Params::positional(mixed(random, sql))));
            db.batch(batch.collect::<Vec<_>>()).await.map(drop)
        }
        9 => {
            // The caller drops the call in the middle.
            let call = db.query(sql, Params::positional(params));
            call.now_or_never().unwrap_or_else(|| Ok(flatwater::Rows::default())).map(drop)
        }
        11 => {
            let sql = spelled(sql, &params);
            db.with_connection(move |connection| connection.execute_batch(&sql).map_err(Error::from)).await
        }
        10 => {
            let seeds: [u64; 2] = random.random();
            let writers = seeds.map(|seed| tokio::spawn(several(db.clone(), seed)));
            futures_util::future::join_all(writers).await.into_iter().for_each(|ended| ended.unwrap());
            Ok(())
        }
        5..8 => {
            let all = (0..random.random_range(2..6)).map(|_| {
                let sql = pick(random, WRITES);
                db.query(sql, Params::positional(mixed(random, sql)))
            });
            futures_util::future::join_all(all.collect::<Vec<_>>()).await;
            Ok(())
        }
        _ if sql.contains("RETURNING") => db.query(sql, Params::positional(params)).await.map(drop),
        _ => db.execute(sql, Params::positional(params)).await.map(drop),
    };
}

/// Writes on a thread of their own.
async fn several(db: Database, seed: u64) {
    let mut random = StdRng::seed_from_u64(seed);
    for _ in 0..3 {
        let sql = pick(&mut random, WRITES);
        let _ = db.query(sql, Params::positional(mixed(&mut random, sql))).await;
        let _ = db.execute(sql, Params::positional(mixed(&mut random, sql))).await;
    }
}

async fn transaction(db: &Database, random: &mut StdRng) -> Result<(), Error> {
    let mut tx = db.begin().await?;
    for _ in 0..random.random_range(0..5) {
        let sql = pick(random, WRITES);
        let params = Params::positional(mixed(random, sql));
        if random.random_range(0..4) == 0 {
            tx.savepoint("named").await?;
            let _ = tx.execute(sql, params).await;
            if random.random() { tx.rollback_to("named").await? } else { tx.release("named").await? }
        } else if random.random_range(0..3) == 0 {
            let savepoint = tx.begin().await?;
            let _ = savepoint.execute(sql, params).await;
            if random.random() { savepoint.commit().await? } else { savepoint.rollback().await? }
        } else {
            let _ = tx.execute(sql, params).await;
        }
    }
    match random.random_range(0..5) {
        0 => tx.rollback().await,
        1 => {
            drop(tx);
            Ok(())
        }
        _ => tx.commit().await,
    }
}

/// The rows, or the error's message.
type Shown = Result<String, String>;

fn shown(result: Result<&flatwater::Rows, &Error>) -> Shown {
    match result {
        Ok(rows) => {
            let columns = rows.columns().collect::<Vec<_>>().join(",");
            Ok(format!("{columns}: {}", super::queries::shown(rows)))
        }
        Err(error) => Err(error.message().to_owned()),
    }
}

/// Waits for the writes whose caller dropped the call, which may still run: the writer runs this one after them.
pub(crate) async fn finish_writes(db: &Database) {
    db.execute("DELETE FROM plain WHERE rowid = -1", ()).await.unwrap();
}

async fn history(place: &Place, seed: u64) {
    let mut random = StdRng::seed_from_u64(seed);
    let inline = if random.random() { Inline::default() } else { Inline::Never };
    let other = TestFile::new();
    let has_other = random.random_range(0..4) == 0;
    let options = place.options().tuning(|t| t.inline(inline));
    let db =
        if has_other { options.tuning(|t| t.attach("other", other.path())) } else { options }.open().await.unwrap();
    db.execute_script(SCHEMA).await.unwrap();
    if has_other {
        db.execute(ATTACHED, ()).await.unwrap();
    }
    let plain = place.file().map(TestFile::plain);
    let mut another = place.file().filter(|_| random.random_range(0..4) == 0).map(Another::start);
    let mut lives = Vec::new();
    for _ in 0..random.random_range(1..4) {
        write(&db, &mut random).await;
    }
    for step in 0..60 {
        // A stream is dropped, and another begins.
        if step > 12 && random.random_range(0..10) == 0 {
            let at = random.random_range(0..lives.len());
            drop(lives.swap_remove(at));
        }
        if lives.len() < 12 {
            let sql = pick(&mut random, QUERIES);
            let params = mixed(&mut random, sql);
            lives.push((sql, params.clone(), db.live(sql, Params::positional(params)), None::<Shown>));
        }
        match random.random_range(0..20) {
            0 if plain.is_some() => {
                let sql = if random.random_range(0..4) == 0 {
                    pick(&mut random, DEFINITIONS)
                } else {
                    pick(&mut random, WRITES)
                };
                let sql = spelled(sql, &mixed(&mut random, sql));
                let _ = plain.as_ref().map(|plain| plain.execute_batch(&sql));
            }
            1 => {
                if let Some(another) = &mut another {
                    let sql = pick(&mut random, WRITES);
                    another.run(&spelled(sql, &mixed(&mut random, sql)));
                }
            }
            _ => write(&db, &mut random).await,
        }
        for (_, _, live, last) in &mut lives {
            while let Some(Some(result)) = live.next().now_or_never() {
                *last = Some(shown(result.as_deref()));
            }
        }
    }
    finish_writes(&db).await;
    for (sql, params, live, last) in &mut lives {
        let fresh = db.query(*sql, Params::positional(params.clone())).await;
        let fresh = shown(fresh.as_ref());
        // A result that is not there yet comes; one that never comes ends the test by its time limit.
        while last.as_ref() != Some(&fresh) {
            let told = format!("seed {seed}: {sql} {params:?} delivered {last:?} and not {fresh:?}");
            let next = tokio::time::timeout(super::queries::HANGS, live.next()).await.expect(&told);
            *last = Some(shown(next.expect(&told).as_deref()));
        }
    }
    drop(lives);
    db.close().await.unwrap();
}

pub(crate) fn histories(place: fn() -> Place, histories: u64, history: impl AsyncFn(&Place, u64)) {
    let number = |name| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    if let Some(seed) = number("FLATWATER_SEED") {
        return run(history(&place(), seed));
    }
    let first: u64 = rand::random();
    for at in 0..number("FLATWATER_HISTORIES").unwrap_or(histories) {
        run(history(&place(), first.wrapping_add(at)));
    }
}

#[test]
fn after_the_last_write_every_live_query_has_delivered_what_a_fresh_run_returns() {
    histories(Place::on_file, 60, history);
}

#[test]
fn after_the_last_write_in_memory_every_live_query_has_delivered_what_a_fresh_run_returns() {
    histories(Place::in_memory, 30, history);
}
