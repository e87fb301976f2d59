//! A database in memory that has the schema of a program, and the check of a text against it.
//!
//! Owns: building the schema, and what is said of a text. Used by one thread at a time. Invariants: no text that is checked runs; a
//! schema stays as its migrations made it. Leaves out: following a program (`infer`), hints (`hints`).

mod foreign_keys;
mod hints;
mod statements;
mod tables;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use flatwater_sqlite::{ColumnSource, Prepared, Sqlite};
use rusqlite::functions::{Aggregate, Context, FunctionFlags};
use rusqlite::{Connection, OpenFlags};

use crate::catalogue::Catalogue;
use crate::declared::{Database, Function};
use crate::fault::{Fault, place};
use crate::infer::value::Value;
use crate::infer::{Found, Use, infer};
use crate::kind::Kind;
use crate::migrations;

pub use tables::{Table, TableField};

/// The schema of one database.
pub struct Schema {
    sqlite: Sqlite,
    catalogue: Catalogue,
    functions: Vec<Function>,
    /// The migration that made each table and view, by its name in lower case.
    made: BTreeMap<String, String>,
    files: Vec<PathBuf>,
}

/// What a text returns and takes.
#[derive(Debug, Clone, PartialEq)]
pub struct Checked {
    /// The columns of its result; none if it returns no rows.
    pub columns: Vec<Column>,
    /// Its parameters, by their numbers.
    pub parameters: Vec<Parameter>,
    /// Whether it writes nothing.
    pub read_only: bool,
    /// The tables of which every row is read, by the plan for a database without statistics.
    pub scans: Vec<String>,
}

/// A column of a result.
#[derive(Debug, Clone, PartialEq)]
pub struct Column {
    /// Its name, with what [`Label`](crate::Label) reads.
    pub name: String,
    /// What its values are.
    pub kind: Kind,
    /// Whether a value may be NULL.
    pub nullable: bool,
    /// Whether no value can be of another kind: false for a column that is not STRICT, and for sums, which may overflow.
    pub certain: bool,
    /// The table and the column whose value it is, unchanged.
    pub origin: Option<(String, String)>,
    /// The declared type of that column, as it is written there.
    pub declared: Option<String>,
}

/// A parameter.
#[derive(Debug, Clone, PartialEq)]
pub struct Parameter {
    /// Its name, without the mark before it.
    pub name: Option<String>,
    /// What it is compared with, or stored in; [`Kind::Any`] if that is not known.
    pub kind: Kind,
    /// Whether NULL makes sense: it is stored in a column that takes NULL, or is not known.
    pub nullable: bool,
    /// The table and the column that it is compared with, or stored in.
    pub origin: Option<(String, String)>,
    /// The declared type of that column.
    pub declared: Option<String>,
}

impl Schema {
    /// Builds the schema of a database from its migrations. Blocks on the file system.
    ///
    /// # Errors
    /// A migration that cannot be read or applied, an extension that cannot be loaded.
    pub fn new(database: &Database) -> Result<Self, Fault> {
        let sqlite = Sqlite::open(Path::new(":memory:"), OpenFlags::default(), None)?;
        declare(sqlite.rusqlite(), database)?;
        for extension in &database.extensions {
            sqlite.load_extension(extension, None).map_err(|error| {
                let fault = Fault::from(error);
                Fault {
                    message: format!("the extension {} cannot be loaded: {}", extension.display(), fault.message),
                    ..fault
                }
            })?;
        }
        let (mut files, mut made) = (Vec::new(), BTreeMap::new());
        let (sqlite, attached) = attach(sqlite, database, &mut files, &mut made)?;
        attached?;
        let sqlite = sqlite.ok_or_else(|| Fault::new("the database was lost"))?;
        apply(sqlite.rusqlite(), &database.migrations, &mut files, &mut made)?;
        let catalogue = Catalogue::of(sqlite.rusqlite())?;
        Ok(Self { sqlite, catalogue, functions: database.functions.clone(), made, files })
    }

    /// The files that made the schema: it is to be built again if one changes.
    #[must_use]
    pub fn files(&self) -> &[PathBuf] {
        &self.files
    }

    /// Says what a text returns and takes. It does not run.
    ///
    /// # Errors
    /// SQLite's error, with what to do; several statements, none, and what a call of Flatwater does not run.
    pub fn check(&mut self, sql: &str) -> Result<Checked, Fault> {
        let prepared = match self.sqlite.prepare(sql) {
            Ok(prepared) => prepared.ok_or_else(|| Fault::new("the text has no statement"))?,
            Err(error) => return Err(self.with_hint(error.into(), sql)),
        };
        let checked = self.prepared(&prepared, sql);
        self.sqlite.statement(prepared.id).finalize();
        checked
    }

    fn prepared(&mut self, prepared: &Prepared, sql: &str) -> Result<Checked, Fault> {
        let rest = &sql[prepared.length..];
        if self.sqlite.has_statement(rest) {
            let offset = prepared.length + rest.len() - rest.trim_start().len();
            return Err(Fault::new("the text has several statements")
                .at(offset)
                .with_hint("a call runs one; write a text for each, or use `batch` or `execute_script`"));
        }
        statements::refuse(&prepared.events)?;
        let names = self.sqlite.statements().column_names(prepared.id)?;
        let sources = self.sqlite.statements().column_sources(prepared.id)?;
        let found = self.infer(prepared, sql)?;
        let values = found.as_ref().and_then(|found| found.columns.clone());
        let column = |(at, source): (usize, ColumnSource)| {
            let value = values.as_ref().and_then(|values| values.get(at)).cloned().unwrap_or(Value::ANY);
            // Of what was just stored SQLite knows the column; a result of several queries it takes for that of the first.
            column(&names[at], &value, source, values.is_some() && !prepared.readonly)
        };
        let columns = sources.into_iter().enumerate().map(column).collect();
        let parameters = self.parameters(sql, found.as_ref())?;
        let scans = found.map(|found| found.scans).unwrap_or_default();
        Ok(Checked { columns, parameters, read_only: prepared.readonly, scans })
    }

    /// `None` for what must not be explained.
    fn infer(&mut self, prepared: &Prepared, sql: &str) -> Result<Option<Found>, Fault> {
        if prepared.explain || statements::is_pragma(&prepared.events) {
            return Ok(None);
        }
        let programs = self.sqlite.explain(sql)?;
        Ok(programs.first().map(|program| infer(program, &self.catalogue, &self.functions)))
    }

    fn parameters(&self, sql: &str, found: Option<&Found>) -> Result<Vec<Parameter>, Fault> {
        let statement = self.sqlite.rusqlite().prepare(sql)?;
        let parameter = |number| {
            let name = statement.parameter_name(number).map(str::to_owned);
            let name = name.map(|name| name.trim_start_matches(['?', ':', '@', '$']).to_owned());
            let name = name.filter(|name| !name.starts_with(|c: char| c.is_ascii_digit()));
            parameter(name, found.map_or(&[], |found| found.uses.get(number)))
        };
        Ok((1..=statement.parameter_count()).map(parameter).collect())
    }
}

fn column(name: &str, value: &Value, source: ColumnSource, is_stored: bool) -> Column {
    if is_stored && value.column.is_none() && source.origin.is_some() {
        let kind = source.declared_type.as_deref().map_or(Kind::Any, crate::kind::declared);
        let origin = source.origin.map(|origin| (origin.table.into(), origin.column.into()));
        let declared = source.declared_type.map(Into::into);
        return Column { name: name.into(), kind, nullable: value.null, certain: kind == Kind::Any, origin, declared };
    }
    let kind = value.column.as_ref().map_or_else(|| Kind::of(value.classes), |column| column.kind);
    Column {
        name: name.into(),
        kind,
        nullable: value.null,
        certain: value.certain || kind == Kind::Any,
        origin: value.column.as_ref().map(|column| (column.table.clone(), column.name.clone())),
        declared: value.column.as_ref().map(|column| column.declared.clone()).filter(|declared| !declared.is_empty()),
    }
}

fn parameter(name: Option<String>, uses: &[Use]) -> Parameter {
    let same = uses.windows(2).all(|two| two[0].kind == two[1].kind);
    let kind = uses.first().filter(|_| same).map_or(Kind::Any, |used| used.kind);
    let takes_null = |used: &Use| used.is_stored && used.column.as_ref().is_none_or(|column| !column.not_null);
    let column = uses.iter().find_map(|used| used.column.as_ref()).filter(|_| kind != Kind::Any);
    Parameter {
        name,
        kind,
        nullable: uses.is_empty() || uses.iter().any(takes_null),
        origin: column.map(|column| (column.table.clone(), column.name.clone())),
        declared: column.map(|column| column.declared.clone()).filter(|declared| !declared.is_empty()),
    }
}

/// An aggregate that is declared and never runs for a result that matters.
struct Declared;

impl Aggregate<(), Option<i64>> for Declared {
    fn init(&self, _: &mut Context<'_>) -> rusqlite::Result<()> {
        Ok(())
    }

    fn step(&self, _: &mut Context<'_>, (): &mut ()) -> rusqlite::Result<()> {
        Ok(())
    }

    fn finalize(&self, _: &mut Context<'_>, _: Option<()>) -> rusqlite::Result<Option<i64>> {
        Ok(None)
    }
}

/// Registers what a program declares, by name only.
fn declare(connection: &Connection, database: &Database) -> Result<(), Fault> {
    let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC | FunctionFlags::SQLITE_INNOCUOUS;
    for Function { name, arguments, aggregate, .. } in &database.functions {
        if *aggregate {
            connection.create_aggregate_function(&**name, *arguments, flags, Declared)?;
        } else {
            connection.create_scalar_function(&**name, *arguments, flags, |_| Ok(None::<i64>))?;
        }
    }
    for name in &database.collations {
        connection.create_collation(&**name, |one: &str, other: &str| one.cmp(other))?;
    }
    Ok(())
}

type Attached = (Option<Sqlite>, Result<(), Fault>);

/// Attaches the databases that are declared, each built on its own: its migrations do not name its schema.
fn attach(
    sqlite: Sqlite,
    database: &Database,
    files: &mut Vec<PathBuf>,
    made: &mut BTreeMap<String, String>,
) -> Result<Attached, Fault> {
    if database.attached.is_empty() {
        return Ok((Some(sqlite), Ok(())));
    }
    let (attached, sqlite) = sqlite.lend(|connection| {
        for attached in &database.attached {
            let mut own = Connection::open_in_memory()?;
            declare(&own, database)?;
            apply(&own, &attached.migrations, files, made)?;
            connection.execute("ATTACH ':memory:' AS ?1", [&attached.name])?;
            let bytes = own.serialize("main")?;
            connection.deserialize_read_exact(&*attached.name, &bytes[..], bytes.len(), true)?;
        }
        Ok(())
    })?;
    Ok((sqlite, attached))
}

/// Applies the migrations of a folder.
fn apply(
    connection: &Connection,
    folder: &Path,
    files: &mut Vec<PathBuf>,
    made: &mut BTreeMap<String, String>,
) -> Result<(), Fault> {
    connection.execute_batch("PRAGMA foreign_keys = OFF")?;
    let mut before = definitions(connection)?;
    for migration in migrations::of(folder)? {
        let failed = |message: String| Fault::new(format!("the migration {}: {message}", migration.name));
        let script = std::fs::read_to_string(&migration.path).map_err(|error| failed(error.to_string()))?;
        connection.execute_batch(&script).map_err(|error| hints::of_migration(failed, error.into(), &script))?;
        let after = definitions(connection)?;
        for (name, sql) in &after {
            if before.get(name) != Some(sql) && !made.contains_key(name) {
                made.insert(name.clone(), migration.name.clone());
            }
        }
        before = after;
        files.push(migration.path);
    }
    Ok(())
}

/// The tables and views, by their names in lower case.
fn definitions(connection: &Connection) -> Result<BTreeMap<String, String>, Fault> {
    let sql = "SELECT lower(name), coalesce(sql, '') FROM sqlite_schema WHERE type IN ('table', 'view')";
    let mut statement = connection.prepare(sql)?;
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// The number of the line with a byte.
fn line(script: &str, offset: usize) -> usize {
    place(script, offset).0
}
