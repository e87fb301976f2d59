//! The reads of a query: what its result depends on, derived from one prepare and its program. Pure.
//!
//! Owns: the rules by which a query depends on tables, columns, rows, or on every commit. Invariant: a change that does
//! not invalidate the reads leaves the result as it is. Leaves out: asking SQLite for the events, the program and the schema
//! (`connection::learn::live_query`).

use std::collections::HashMap;

use flatwater_sqlite::{AuthEvent, Program, REPORTS_ALL_ROWS};
use rusqlite::ffi;

use super::Columns;
use super::point_lookup::{LookedUp, Uses, opened};
use super::tables::{Index, Kind, Table, Tables};
use flatwater_base::growth_counter::step;

/// What the result of a query depends on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reads {
    /// On every commit.
    EveryCommit,
    /// These tables.
    Tables(Vec<TableReads>),
}

/// What it depends on in one table of the main database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableReads {
    /// The table.
    pub table: Box<str>,
    /// Besides which rows there are.
    pub columns: Columns,
    /// Which rows.
    pub rows: RowReads,
    /// SQLite reports the rows that change.
    pub are_rows_reported: bool,
    /// A constraint or a trigger of the schema may replace rows, which SQLite does not report.
    pub may_be_replaced: bool,
    /// The table has generated columns.
    pub has_generated: bool,
    /// The columns that may be the rowid. SQLite reports only the new rowid of a row whose rowid they change.
    pub rowid_aliases: Vec<Box<str>>,
}

/// Which rows of a table the result depends on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RowReads {
    /// Any row.
    Any,
    /// Those with these rowids.
    Rowids(Vec<LookedUp>),
    /// The row that has the parameters of these numbers in these columns, which no other row can have: the row that is
    /// there, as long as it stays as it is. Any row if there is none.
    Unique {
        /// The name of the rowid.
        rowid: &'static str,
        /// The columns of the key, and the parameters that they are compared with.
        columns: Vec<(Box<str>, i32)>,
    },
}

/// A query that reads a TEMP table, which other connections do not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadsTemp;

/// The name under which SQLite reports a rowid that is no column.
const ROWID: &str = "ROWID";
/// The number of the TEMP database. Those of attached files are larger.
const TEMP: i32 = 1;

/// Table-valued functions whose rows depend on their arguments alone.
const PURE_TABLES: &[&str] = &["json_each", "json_tree", "generate_series"];
/// The functions of the FTS tables, which depend on what the table depends on.
const FTS_FUNCTIONS: &[&str] = &["bm25", "highlight", "match", "matchinfo", "offsets", "optimize", "rank", "snippet"];

impl Reads {
    /// `of_any_plan`: the program is not the only one that SQLite may make of the text.
    pub fn of(
        events: &[AuthEvent],
        programs: &[Program],
        tables: &Tables,
        of_any_plan: bool,
    ) -> Result<Self, ReadsTemp> {
        let database = |event: &&AuthEvent| event.database.as_deref().unwrap_or("main") == "temp";
        let reads = || events.iter().filter(|event| event.action == ffi::SQLITE_READ);
        let opens_temp = programs.iter().flat_map(opened).any(|(_, _, database)| database == TEMP);
        if reads().any(|event| database(&event)) || opens_temp {
            return Err(ReadsTemp);
        }
        let [program] = programs else { return Ok(Self::EveryCommit) };
        let of_any_plan = of_any_plan || tables.has_statistics;
        let uses_attached = program.iter().any(|op| &*op.opcode == "Transaction" && op.p1 > TEMP);
        if uses_attached || has_impure_function(events, tables) {
            return Ok(Self::EveryCommit);
        }
        let Some(mut columns) = columns_of(reads()) else { return Ok(Self::EveryCommit) };
        let mut read = Vec::with_capacity(columns.len());
        if tables.joins_by_name && program.iter().any(|op| &*op.opcode == "VOpen") {
            return Ok(Self::EveryCommit);
        }
        let facts = Facts::of(program, tables, of_any_plan);
        for (_, root, _) in opened(program) {
            step(1);
            let Some(name) = facts.by_root.get(&root).copied() else { return Ok(Self::EveryCommit) };
            match columns.get_mut(name) {
                Some(columns) if tables.joins_by_name => *columns = Columns::All,
                Some(_) => {}
                None if matches!(tables.tables[name].kind, Kind::Rowid | Kind::WithoutRowid) && !is_internal(name) => {
                    read.push(any_row_of(name));
                }
                None => return Ok(Self::EveryCommit),
            }
        }
        for (name, columns) in columns {
            if PURE_TABLES.iter().any(|pure| pure.eq_ignore_ascii_case(name)) && !tables.tables.contains_key(name) {
                continue;
            }
            match tables.tables.get(name).map(|table| &table.kind) {
                Some(Kind::View) => {}
                Some(Kind::Shadowed) => read.extend(facts.shadows(name)),
                Some(Kind::Rowid | Kind::WithoutRowid) if !is_internal(name) => {
                    read.push(facts.table_reads(name, columns));
                }
                _ => return Ok(Self::EveryCommit),
            }
        }
        read.sort_by(|one, other| one.table.cmp(&other.table));
        read.dedup_by(|one, other| one == other);
        Ok(Self::Tables(read))
    }
}

/// Returns the columns of each table that the events read. `None`: one does not say of which table.
fn columns_of<'a>(reads: impl Iterator<Item = &'a AuthEvent>) -> Option<HashMap<&'a str, Columns>> {
    let mut columns: HashMap<&str, Columns> = HashMap::new();
    for event in reads {
        let read = columns.entry(event.first.as_deref()?).or_insert(Columns::NONE);
        // A table of which no column is read has an event with an empty name, which may be the name of a column.
        if let Some(column) = &event.second {
            read.add(column);
        }
    }
    Some(columns)
}

/// Returns true for SQLite's own tables. What is written to them is not reported.
fn is_internal(table: &str) -> bool {
    table.get(..7).is_some_and(|start| start.eq_ignore_ascii_case("sqlite_"))
}

fn has_impure_function(events: &[AuthEvent], tables: &Tables) -> bool {
    let is_impure = |name: &str| {
        let name = name.to_ascii_lowercase();
        !tables.pure_functions.contains(&*name) && !FTS_FUNCTIONS.contains(&&*name)
    };
    let functions = events.iter().filter(|event| event.action == ffi::SQLITE_FUNCTION);
    functions.into_iter().any(|event| event.second.as_deref().is_none_or(is_impure))
}

/// Returns the reads of a table of which anything is read.
fn any_row_of(table: &str) -> TableReads {
    TableReads {
        table: table.into(),
        columns: Columns::All,
        rows: RowReads::Any,
        are_rows_reported: false,
        may_be_replaced: false,
        has_generated: false,
        rowid_aliases: Vec::new(),
    }
}

/// The facts of the program and of the schema, in the order in which they are looked up.
struct Facts<'a> {
    program: &'a Program,
    tables: &'a Tables,
    uses: Uses<'a>,
    /// The tables, by their root pages and those of their indexes.
    by_root: HashMap<i32, &'a str>,
    /// The names of the tables, ascending.
    names: Vec<&'a str>,
    /// The indexes that the program reads, by table.
    used: HashMap<&'a str, Vec<(i32, &'a Index)>>,
    /// Those that another plan may read.
    others: HashMap<&'a str, Vec<&'a Index>>,
}

impl<'a> Facts<'a> {
    fn of(program: &'a Program, tables: &'a Tables, of_any_plan: bool) -> Self {
        let mut by_root: HashMap<i32, &str> = tables.tables.iter().map(|(name, table)| (table.root, &**name)).collect();
        by_root.extend(tables.indexes.iter().map(|(root, index)| (*root, &*index.table)));
        let mut names: Vec<&str> = tables.tables.keys().map(|name| &**name).collect();
        names.sort_unstable();
        let mut used: HashMap<&str, Vec<(i32, &Index)>> = HashMap::new();
        for (_, root, _) in opened(program) {
            if let Some(index) = tables.indexes.get(&root) {
                used.entry(&index.table).or_default().push((root, index));
            }
        }
        let mut others: HashMap<&str, Vec<&Index>> = HashMap::new();
        for index in tables.indexes.values().filter(|_| of_any_plan) {
            others.entry(&index.table).or_default().push(index);
        }
        Self { program, tables, uses: Uses::of(program), by_root, names, used, others }
    }

    /// Returns the reads of a virtual table and of the tables in which it keeps its rows.
    fn shadows(&self, name: &str) -> Vec<TableReads> {
        let first = self.names.partition_point(|table| *table < name);
        let begin_so = self.names[first..].iter().map_while(|table| Some((*table, table.strip_prefix(name)?)));
        let is_shadow = |rest: &str| rest.is_empty() || rest.starts_with('_');
        begin_so.inspect(|_| step(1)).filter(|(_, rest)| is_shadow(rest)).map(|(table, _)| any_row_of(table)).collect()
    }

    fn table_reads(&self, name: &str, mut columns: Columns) -> TableReads {
        let Self { program, tables, .. } = self;
        let table = &tables.tables[name];
        if table.kind == Kind::WithoutRowid {
            // It orders the rows.
            table.primary_key.iter().for_each(|column| columns.add(column));
        }
        let used = self.used.get(name).map_or(&[][..], Vec::as_slice);
        let rows = match used {
            _ if table.kind != Kind::Rowid => RowReads::Any,
            [] => self.uses.looked_up(table.root).map_or(RowReads::Any, RowReads::Rowids),
            [(root, index)] if !index.unique.is_empty() => self.by_key(table, *root, &index.unique),
            _ => RowReads::Any,
        };
        // One table whose row is looked up has one plan (`whereShortCut`).
        let is_of_table = |root: i32| root == table.root || used.iter().any(|(of_index, _)| *of_index == root);
        let has_one_plan = rows != RowReads::Any && opened(program).all(|(_, root, _)| is_of_table(root));
        let others = self.others.get(name).into_iter().flatten().copied().filter(|_| !has_one_plan);
        for index in used.iter().map(|(_, index)| *index).chain(others) {
            step(1);
            columns.add_all(&index.columns);
        }
        // With both rowids of each row it does not matter which column is the rowid.
        let mut rowid_aliases = Vec::new();
        if !REPORTS_ALL_ROWS {
            rowid_aliases.extend_from_slice(&table.rowid_aliases);
            rowid_aliases.push(ROWID.into());
        }
        TableReads {
            table: name.into(),
            columns,
            rows,
            are_rows_reported: REPORTS_ALL_ROWS || table.kind == Kind::Rowid,
            may_be_replaced: !REPORTS_ALL_ROWS && tables.replaces,
            has_generated: table.has_generated,
            rowid_aliases,
        }
    }

    fn by_key(&self, table: &Table, index: i32, columns: &[Box<str>]) -> RowReads {
        match (self.uses.looked_up_by_key(table.root, index, columns.len()), table.rowid_name) {
            (Some(parameters), Some(rowid)) => {
                RowReads::Unique { rowid, columns: columns.iter().cloned().zip(parameters).collect() }
            }
            _ => RowReads::Any,
        }
    }
}
