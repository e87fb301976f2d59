//! Running a live query: its result, and what it reads, in one snapshot.
//!
//! Owns: asking SQLite for the authorizer's events and the program of a text. Runs on the thread that has the connection.
//! Invariant: reads belong to the schema cookie of the snapshot in which the result was computed. Leaves out: what the
//! schema says (`schema_tables`), the rules (`dependencies::reads`), and when a query runs.

use std::collections::HashSet;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use flatwater_sqlite::{AuthEvent, Policy};

use super::analyse::learn;
use super::schema::SchemaFacts;
use super::schema_tables::tables;
use crate::connection::EngineConnection;
use crate::connection::run::execute::{Bounds, Collected, Output, StatementRun};
use crate::connection::run::prepare::refuse_change_function;
use crate::connection::run::statement_cache::CachedStatement;
use flatwater_base::error::hint::hint;
use flatwater_base::error::{Error, ErrorCode, Result};
use flatwater_base::thread::current::RunTime;
use flatwater_base::values::params::Params;
use flatwater_base::values::row::Rows;
use flatwater_sql::class::Route;
use flatwater_sql::dependencies::reads::{Reads, ReadsTemp, RowReads, TableReads};
use flatwater_sql::dependencies::tables::PrimaryKeys;
use flatwater_sql::policy;
use flatwater_sql::statement_info::StatementInfo;
use flatwater_sql::tokens::quoted;

/// A query that is run again whenever its result may have changed, or several of which the results are of one snapshot.
/// Equal ones are one.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct LiveQuery(pub(crate) Box<[LivePart]>);

impl LiveQuery {
    /// The statements, each with what its text read the last time.
    pub(crate) fn parts<'a>(
        &'a self,
        known: &'a [Option<Derived>],
    ) -> impl Iterator<Item = (&'a Arc<StatementInfo>, &'a Params, Option<&'a Derived>)> + Clone {
        self.0.iter().zip(known).map(|(part, known)| (&part.text, &part.params, known.as_ref()))
    }
}

/// One statement of a live query.
#[derive(Debug)]
pub(crate) struct LivePart {
    pub(crate) text: Arc<StatementInfo>,
    pub(crate) params: Params,
}

impl PartialEq for LivePart {
    fn eq(&self, other: &Self) -> bool {
        self.text.sql == other.text.sql && self.params == other.params
    }
}

/// No parameter is NaN, so each equals itself.
impl Eq for LivePart {}

impl Hash for LivePart {
    /// Equal ones have equal hashes; the parameters of others may have too.
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.text.sql.hash(hasher);
        self.params.hash_values(hasher);
    }
}

/// What a text reads, under one schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Derived {
    /// The schema cookie for which it holds.
    pub(crate) cookie: i64,
    /// The number of the last change of the functions.
    functions: u64,
    /// They hold for each plan, not only for the one that SQLite makes without the values of the parameters.
    of_any_plan: bool,
    pub(crate) reads: Arc<Reads>,
    /// The keys of the tables that it reads.
    pub(crate) keys: Arc<PrimaryKeys>,
}

impl Derived {
    /// Of a text of which nothing is known.
    pub(crate) fn of_every_commit() -> Self {
        let reads = Arc::new(Reads::EveryCommit);
        Self { cookie: 0, functions: 0, of_any_plan: true, reads, keys: Arc::default() }
    }

    /// Returns what a run finds, if it looks up no row by a unique key.
    pub(crate) fn finds_no_rows(&self) -> Option<Found> {
        let Reads::Tables(tables) = &*self.reads else { return Some(Found::new()) };
        let looks_up = |table: &TableReads| matches!(table.rows, RowReads::Unique { .. });
        (!tables.iter().any(looks_up)).then(|| vec![None; tables.len()])
    }
}

#[cfg(test)]
impl Derived {
    pub(crate) fn of(reads: Reads) -> Self {
        Self { cookie: 0, functions: 0, of_any_plan: false, reads: Arc::new(reads), keys: Arc::default() }
    }
}

/// One run of one statement of a live query.
pub(crate) struct LiveRun {
    pub(crate) rows: Rows,
    pub(crate) derived: Derived,
    /// For each table that it reads: the rowid of the row that it looked up by a unique key, if it found one.
    pub(crate) found: Found,
}

/// The rowids of the rows that were looked up, by the position of their table in the reads.
pub(crate) type Found = Vec<Option<i64>>;

/// Runs the statements of a live query in one snapshot. `known` is what their texts read the last time. The
/// connection has no open transaction. May be interrupted by what is armed.
pub(crate) fn run_live<'a>(
    connection: &mut EngineConnection,
    parts: impl Iterator<Item = (&'a Arc<StatementInfo>, &'a Params, Option<&'a Derived>)> + Clone,
) -> Result<Vec<LiveRun>> {
    // Some act while they are prepared.
    if let Some((text, ..)) = parts.clone().find(|(text, ..)| text.tells_of_its_prepare) {
        return Err(not_a_query().with_sql(&text.sql));
    }
    let cookie = connection.control.hold(&mut connection.sqlite)?;
    let functions = connection.functions.seen();
    let is_known = |known: &&Derived| (known.cookie, known.functions) == (cookie, functions);
    let runs = parts.map(|(text, params, known)| run_held(connection, text, params, known.filter(is_known), cookie));
    let runs = runs.collect();
    connection.control.let_go(&mut connection.sqlite);
    runs
}

fn run_held(
    connection: &mut EngineConnection,
    text: &Arc<StatementInfo>,
    bound: &Params,
    known: Option<&Derived>,
    cookie: i64,
) -> Result<LiveRun> {
    let text = &text.clone().for_values(&bound.row());
    if known.is_none() {
        // A text that is prepared under an older schema reads what that schema says.
        connection.schema.load(&mut connection.sqlite)?;
        connection.statements.forget(&mut connection.sqlite, text);
    }
    let ready = connection.ready(text, policy::statement, &SchemaFacts::default())?;
    let time = RunTime::begin();
    let run = run_ready(connection, &ready, bound, known, cookie);
    let run = run.and_then(|run| learn(connection, &ready, bound.row(), Some(time)).map(|()| run));
    connection.done_with(&ready);
    run
}

fn run_ready(
    connection: &mut EngineConnection,
    ready: &CachedStatement,
    bound: &Params,
    known: Option<&Derived>,
    cookie: i64,
) -> Result<LiveRun> {
    let text = &ready.text;
    refuse_change_function(ready)?;
    if ready.class.route == Route::Write || ready.class.columns == 0 {
        return Err(not_a_query().with_sql(&text.sql));
    }
    let mut derived = known.cloned().map_or_else(|| derive(connection, text, cookie, false), Ok)?;
    let (params, output) = (bound.row(), Output::Rows(usize::MAX));
    let outcome = connection.execute(&StatementRun { statement: ready, params, output, bounds: Bounds::Armed })?;
    let Collected::Rows(rows) = outcome.result else { return Err(not_a_query()) };
    // SQLite prepared it again with the values of the parameters, and may have made another plan.
    if !derived.of_any_plan && connection.sqlite.statements().reprepares(ready.id) != 0 {
        derived = derive(connection, text, cookie, true)?;
    }
    let found = match &*derived.reads {
        Reads::Tables(tables) => {
            tables.iter().map(|table| find_row(connection, table, bound)).collect::<Result<_>>()?
        }
        Reads::EveryCommit => Found::new(),
    };
    Ok(LiveRun { rows, derived, found })
}

/// Finds the row that the query looks up by a unique key, in the snapshot that is held.
fn find_row(connection: &mut EngineConnection, table: &TableReads, params: &Params) -> Result<Option<i64>> {
    let RowReads::Unique { rowid, columns } = &table.rows else { return Ok(None) };
    let Some(key) = params.pick(columns.iter().map(|(_, number)| *number)) else { return Ok(None) };
    let text = Arc::new(StatementInfo::new(&finds(&table.table, rowid, columns)));
    let ready = connection.ready(&text, policy::statement, &SchemaFacts::default())?;
    let (params, output) = (key.row(), Output::Rows(1));
    let outcome = connection.execute(&StatementRun { statement: &ready, params, output, bounds: Bounds::Armed });
    connection.done_with(&ready);
    let Collected::Rows(rows) = outcome?.result else { return Ok(None) };
    rows.read_optional_value()
}

/// Finds out what the text reads, in the snapshot that is held.
fn derive(connection: &mut EngineConnection, text: &StatementInfo, cookie: i64, of_any_plan: bool) -> Result<Derived> {
    let mut events: Vec<AuthEvent> = Vec::new();
    let before = connection.sqlite.hooks().authorizer.set_policy(policy::statement as Policy);
    let programs = connection.sqlite.explain_if(&text.sql, |seen| {
        events.extend_from_slice(seen);
        true
    });
    connection.sqlite.hooks().authorizer.set_policy(before);
    let programs = programs?.unwrap_or_default();
    let read: HashSet<&str> = events.iter().filter_map(|event| event.first.as_deref()).collect();
    let tables = connection.sqlite.patiently_with(|sqlite| tables(sqlite, &read, &text.sql))?;
    let keys = Arc::new(PrimaryKeys::of(&tables));
    match Reads::of(&events, &programs, &tables, of_any_plan) {
        Ok(reads) => {
            Ok(Derived { cookie, functions: connection.functions.seen(), of_any_plan, reads: Arc::new(reads), keys })
        }
        Err(ReadsTemp) => Err(Error::new(ErrorCode::NotLive, "a live query cannot read a TEMP table")
            .with_hint("TEMP tables exist on one connection only; use an ordinary table")
            .with_sql(&text.sql)),
    }
}

/// Returns the text that finds the row with these values in these columns.
fn finds(table: &str, rowid: &str, columns: &[(Box<str>, i32)]) -> String {
    let is = |(column, _): &(Box<str>, i32)| format!("{} = ? COLLATE BINARY", quoted(column));
    let conditions = columns.iter().map(is).collect::<Vec<_>>().join(" AND ");
    format!("SELECT {rowid} FROM main.{} WHERE {conditions}", quoted(table))
}

pub(crate) fn not_a_query() -> Error {
    Error::new(ErrorCode::NotLive, "a live query is a statement that only reads and returns rows")
        .with_hint(hint!["use " Query " for RETURNING, PRAGMA and EXPLAIN"])
}

#[cfg(test)]
mod tests {
    use rusqlite::Connection as Sqlite;

    use super::*;
    use crate::connection::open::Role;
    use crate::options::Options;
    use flatwater_sql::dependencies::Columns;
    use flatwater_sql::dependencies::point_lookup::LookedUp;

    const SCHEMA: &str = "
        CREATE TABLE t (id INTEGER PRIMARY KEY, a, b, c UNIQUE, d TEXT COLLATE NOCASE UNIQUE);
        CREATE INDEX t_b ON t (b, a);
        CREATE UNIQUE INDEX t_ab ON t (a, b);
        CREATE TABLE w (k PRIMARY KEY, v) WITHOUT ROWID;
        CREATE TABLE g (a, twice AS (a * 2));
        CREATE TABLE e (a, b);
        CREATE INDEX e_sum ON e (a + b);
        CREATE VIEW v AS SELECT a FROM t;
        CREATE VIEW joined AS SELECT 1 AS one FROM e NATURAL JOIN g;
        CREATE VIEW \"the view\" AS SELECT count(*) AS n FROM Joined, w;
        CREATE VIRTUAL TABLE f USING fts5(x);
        CREATE TABLE counted (id INTEGER PRIMARY KEY AUTOINCREMENT);";

    fn open(schema: &str) -> (tempfile::TempDir, EngineConnection) {
        let directory = tempfile::tempdir().unwrap();
        let options = Options::new(directory.path().join("test.db")).resolve().unwrap();
        let connection = EngineConnection::open(&options, &Arc::default(), Role::Creator, Box::new(|_| false)).unwrap();
        connection.sqlite.execute_batch(schema).unwrap();
        (directory, connection)
    }

    fn derived(connection: &mut EngineConnection, sql: &str) -> Arc<Reads> {
        derive(connection, &StatementInfo::new(sql), 0, false).unwrap().reads
    }

    /// Returns the reads as text: for each table its columns, and how its rows are looked up.
    fn reads_of(connection: &mut EngineConnection, sql: &str) -> String {
        let reads = derived(connection, sql);
        let Reads::Tables(tables) = &*reads else { return "every commit".into() };
        let table = |table: &TableReads| {
            let columns = match &table.columns {
                Columns::All => "*".into(),
                Columns::Some(columns) => {
                    let named = columns.iter().filter(|column| !column.is_empty());
                    named.map(|column| &**column).collect::<Vec<_>>().join(" ")
                }
            };
            let rows = match &table.rows {
                RowReads::Any => String::new(),
                RowReads::Rowids(keys) => {
                    let key = |key: &LookedUp| match key {
                        LookedUp::Parameter(number) => format!("?{number}"),
                        LookedUp::Rowid(rowid) => rowid.to_string(),
                    };
                    format!(" [{}]", keys.iter().map(key).collect::<Vec<_>>().join(" "))
                }
                RowReads::Unique { columns, .. } => {
                    let column = |(column, number): &(Box<str>, i32)| format!("{column} = ?{number}");
                    format!(" [{}]", columns.iter().map(column).collect::<Vec<_>>().join(" "))
                }
            };
            format!("{}({columns}){rows}", table.table)
        };
        tables.iter().map(table).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_query_reads_columns_rows_and_what_decides_their_order() {
        let (_directory, mut connection) = open(SCHEMA);
        for (sql, reads) in [
            ("SELECT count(*) FROM w", "w(k)"),
            ("SELECT a FROM t JOIN w ON w.k = t.b", "t(a b) w(k)"),
            ("SELECT 1 FROM e NATURAL JOIN g", "e(*) g(*)"),
            ("SELECT x.id FROM t x JOIN e y USING (b)", "e(*) t(*)"),
            ("SELECT count(*) FROM JOINED", "e(*) g(*)"),
            ("SELECT n FROM [The View]", "e(*) g(*) w(*)"),
            ("SELECT a FROM e WHERE b > 1", "e(a b)"),
            ("SELECT a + b FROM e ORDER BY a + b", "e(*)"),
            ("SELECT a FROM t WHERE b > 1 ORDER BY b LIMIT 3", "t(a b)"),
            ("SELECT v FROM w WHERE k = ?", "w(k v)"),
            ("SELECT twice FROM g", "g(twice)"),
            ("SELECT * FROM v WHERE a > 3", "t(a b)"),
            ("SELECT value FROM json_each(?)", ""),
            ("SELECT upper(?), 1", ""),
            ("SELECT e.a, w.v FROM e JOIN w ON w.k = e.b", "e(a b) w(k v)"),
        ] {
            assert_eq!(reads_of(&mut connection, sql), reads, "{sql}");
        }
        let fts = reads_of(&mut connection, "SELECT x FROM f WHERE f MATCH ?");
        assert!(fts.contains("f(*)") && fts.contains("f_data(*)") && fts.contains("f_idx(*)"), "{fts}");
    }

    #[test]
    fn a_lookup_of_one_row_is_known_by_its_program() {
        let (_directory, mut connection) = open(SCHEMA);
        for (sql, reads) in [
            ("SELECT a FROM t WHERE id = ?", "t(a id) [?1]"),
            ("SELECT a FROM t WHERE rowid = ?2 AND b = ?1", "t(a b id) [?2]"),
            ("SELECT a FROM t WHERE id = 7", "t(a id) [7]"),
            ("SELECT id FROM t WHERE c = ?", "t(c id) [c = ?1]"),
            ("SELECT id FROM t WHERE b = ? AND a = ?", "t(a b id) [a = ?2 b = ?1]"),
            // Not one row, or not by a parameter.
            ("SELECT a FROM t WHERE id = ? + 1", "t(a id)"),
            ("SELECT a FROM t WHERE id > ?", "t(a id)"),
            ("SELECT a FROM t WHERE id IN (?, ?)", "t(a id)"),
            ("SELECT id FROM t WHERE c = lower(?)", "t(c id)"),
            ("SELECT id FROM t WHERE c > ?", "t(c id)"),
            ("SELECT id FROM t WHERE a = ?", "t(a b id)"),
            // Bytes that differ may be equal.
            ("SELECT id FROM t WHERE d = ?", "t(d id)"),
            ("SELECT y.a FROM t x JOIN t y ON y.id = x.b WHERE x.id = ?", "t(a b id)"),
            ("SELECT a, (SELECT count(*) FROM t) FROM t WHERE id = ?", "t(a c id)"),
        ] {
            assert_eq!(reads_of(&mut connection, sql), reads, "{sql}");
        }
    }

    #[test]
    fn with_statistics_a_query_may_use_any_index() {
        let (_directory, mut connection) = open(SCHEMA);
        let query = "SELECT a FROM t ORDER BY a LIMIT 1";
        assert_eq!(reads_of(&mut connection, query), "t(a b)");
        connection.sqlite.execute_batch("ANALYZE").unwrap();
        for (sql, reads) in [
            (query, "t(a b c d)"),
            ("SELECT b FROM e", "e(*)"),
            ("SELECT a FROM t WHERE id = ?", "t(a id) [?1]"),
            ("SELECT id FROM t WHERE c = ?", "t(c id) [c = ?1]"),
            ("SELECT t.c FROM t JOIN w ON w.k = t.b WHERE t.id = ?", "t(a b c d id) [?1] w(k)"),
        ] {
            assert_eq!(reads_of(&mut connection, sql), reads, "{sql}");
        }
    }

    #[test]
    fn what_is_not_understood_depends_on_every_commit() {
        let (_directory, mut connection) = open(SCHEMA);
        let own = rusqlite::functions::FunctionFlags::SQLITE_UTF8;
        connection.sqlite.rusqlite().create_scalar_function("mine", 0, own, |_| Ok(1)).unwrap();
        for sql in [
            "SELECT random() FROM t",
            "SELECT date('now')",
            "SELECT CURRENT_TIMESTAMP",
            "SELECT mine()",
            "SELECT last_insert_rowid()",
            "SELECT * FROM pragma_table_info('t')",
            "SELECT * FROM sqlite_schema",
            "SELECT seq FROM sqlite_sequence",
            "SELECT block FROM f_data",
            "SELECT 1 FROM dbstat",
        ] {
            let text = StatementInfo::new(sql);
            // Some of them may not be compiled in.
            let Ok(derived) = derive(&mut connection, &text, 0, false) else { continue };
            assert_eq!(*derived.reads, Reads::EveryCommit, "{sql}");
        }
    }

    #[test]
    fn a_constraint_or_a_trigger_that_replaces_makes_rows_unknown() {
        let replacing = [
            "CREATE TABLE other (a UNIQUE ON CONFLICT REPLACE)",
            "CREATE TRIGGER x AFTER INSERT ON e BEGIN INSERT OR REPLACE INTO w VALUES (1, 1); END",
        ];
        for definition in replacing {
            let (_directory, mut connection) = open(SCHEMA);
            let may_be_replaced = |connection: &mut EngineConnection| {
                let reads = derived(connection, "SELECT a FROM e");
                let Reads::Tables(tables) = &*reads else { panic!("{reads:?}") };
                tables[0].may_be_replaced
            };
            assert!(!may_be_replaced(&mut connection));
            connection.sqlite.execute_batch(definition).unwrap();
            assert_eq!(may_be_replaced(&mut connection), !flatwater_sqlite::REPORTS_ALL_ROWS, "{definition}");
        }
    }

    #[test]
    fn a_temp_table_is_refused_whatever_is_read_of_it() {
        let (_directory, mut connection) = open(SCHEMA);
        connection.sqlite.execute_batch("CREATE TEMP TABLE mine (a); CREATE TEMP TABLE e (a)").unwrap();
        for sql in ["SELECT a FROM mine", "SELECT count(*) FROM mine", "SELECT count(*) FROM e"] {
            assert!(derive(&mut connection, &StatementInfo::new(sql), 0, false).is_err(), "{sql}");
        }
        assert_eq!(reads_of(&mut connection, "SELECT count(*) FROM main.e"), "e(*)");
    }

    /// A text that is prepared under the older schema is prepared again at its first step, as for another plan.
    #[test]
    fn reads_are_those_of_a_schema_that_another_connection_changed_and_of_one_plan() {
        let (directory, mut connection) = open(SCHEMA);
        let (text, params) = (Arc::new(StatementInfo::new("SELECT * FROM v")), Params::default());
        let mut run = || run_live(&mut connection, std::iter::once((&text, &params, None))).unwrap().remove(0).derived;
        let table = |derived: &Derived| match &*derived.reads {
            Reads::Tables(tables) => tables.iter().map(|table| table.table.to_string()).collect::<Vec<_>>(),
            Reads::EveryCommit => panic!("it reads a table"),
        };
        assert_eq!(table(&run()), ["t"]);
        let another = Sqlite::open(directory.path().join("test.db")).unwrap();
        another.execute_batch("DROP VIEW v; CREATE VIEW v AS SELECT v FROM w").unwrap();
        let derived = run();
        assert_eq!((table(&derived), derived.of_any_plan), (vec!["w".to_owned()], false));
    }

    #[test]
    fn reads_are_derived_again_when_the_schema_changed() {
        let (_directory, mut connection) = open(SCHEMA);
        let text = Arc::new(StatementInfo::new("SELECT * FROM e"));
        let params = Params::default();
        let run = |connection: &mut EngineConnection, known: Option<&Derived>| {
            run_live(connection, std::iter::once((&text, &params, known))).unwrap().remove(0).derived
        };
        let first = run(&mut connection, None);
        assert!(Arc::ptr_eq(&run(&mut connection, Some(&first)).reads, &first.reads));
        connection.sqlite.execute_batch("ALTER TABLE e ADD COLUMN more").unwrap();
        let second = run(&mut connection, Some(&first));
        assert!(first.cookie != second.cookie && first.reads != second.reads);
        assert!(connection.sqlite.handle().is_autocommit());
    }
}
