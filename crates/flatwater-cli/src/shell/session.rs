//! What has been typed: run on one connection.
//!
//! Owns: the connection, and the settings of the shell. Invariants: statements run on a connection of the shell's own, so that
//! transactions, TEMP objects and settings last; a result of it is held in memory until it is printed. Leaves out: reading lines.

use std::fs::File;
use std::io::BufReader;
use std::sync::Arc;
use std::time::{Duration, Instant};

use flatwater::{Connection, Database};

use super::dot::{self, After, COMMANDS, Dot};
use crate::commands::query::of_file;
use crate::failure::{Failure, Outcome};
use crate::interrupt;
use crate::load::table::Conflict;
use crate::load::{Form, Input, Target, import};
use crate::output::{Format, Out};
use crate::sql::dump;
use crate::sql::runner::print;
use crate::sql::statements::{Statement, is_complete, statements};

pub(crate) struct Session {
    db: Database,
    connection: Arc<Connection>,
    format: Format,
    headers: bool,
    timer: bool,
    changes: bool,
    out: Out,
    /// Results go to the output again after the next one.
    once: bool,
}

impl Session {
    pub(crate) fn new(db: Database, format: Format) -> Outcome<Self> {
        let connection = Arc::new(db.connection());
        let interrupted = connection.clone();
        interrupt::on_interrupt(move || {
            let connection = interrupted.clone();
            std::thread::spawn(move || interrupts(&connection));
        })?;
        let out = Out::stdout();
        Ok(Self { db, connection, format, headers: true, timer: false, changes: false, out, once: false })
    }

    pub(crate) fn db(&self) -> &Database {
        &self.db
    }

    pub(crate) fn in_transaction(&self) -> bool {
        self.connection.in_transaction()
    }

    pub(crate) fn close(&mut self) -> Outcome {
        self.out.flush()?;
        self.connection.close().wait()?;
        Ok(self.db.close().wait()?)
    }

    /// Runs statements, and commands on lines of their own.
    pub(crate) fn feed(&mut self, text: &str) -> Outcome<After> {
        let mut sql = String::new();
        for line in text.split_inclusive('\n') {
            if sql.trim().is_empty() && line.starts_with('.') {
                if self.command(line)? == After::Quit {
                    return Ok(After::Quit);
                }
                continue;
            }
            sql.push_str(line);
            if line.contains(';') && is_complete(&sql) {
                self.statements(&sql)?;
                sql.clear();
            }
        }
        self.statements(&sql)?;
        Ok(After::Continue)
    }

    fn statements(&mut self, text: &str) -> Outcome {
        for Statement { sql, begin } in statements(text) {
            if interrupt::came() {
                return Err(Failure::Interrupted);
            }
            let began = Instant::now();
            self.statement(sql).map_err(|failure| failure.at(text, begin))?;
            if self.timer {
                say!("Run Time: real {:.3}", began.elapsed().as_secs_f64());
            }
        }
        Ok(())
    }

    fn statement(&mut self, sql: &str) -> Outcome {
        let result = self.connection.run(sql, ()).wait()?;
        if let Some(rows) = &result.rows {
            print(rows, &mut *self.format.sink(self.headers), &mut self.out)?;
        }
        if self.changes {
            say!("changes: {}   total_changes: {}", result.changes, self.connection.total_changes());
        }
        self.printed()
    }

    /// A result is complete: the next one may go elsewhere.
    fn printed(&mut self) -> Outcome {
        self.out.flush()?;
        if std::mem::take(&mut self.once) {
            self.out = Out::stdout();
        }
        Ok(())
    }

    fn command(&mut self, line: &str) -> Outcome<After> {
        let command = dot::parse(line).map_err(Failure::Usage)?;
        match command {
            Dot::Quit => return Ok(After::Quit),
            Dot::Read(file) => {
                let text = of_file(file.as_ref())?;
                return self.feed(&text);
            }
            Dot::Changes(on) => self.changes = on,
            Dot::Headers(on) => self.headers = on,
            Dot::Timer(on) => self.timer = on,
            Dot::Mode(format) => self.format = format,
            Dot::Output { file, once } => self.output(file.as_deref(), once)?,
            Dot::Help => COMMANDS.iter().for_each(|(usage, text)| say!("{usage:<40} {text}")),
            Dot::Databases => self.list("SELECT name || ': ' || file FROM pragma_database_list", None)?,
            Dot::Indexes(table) => self.list(INDEXES, table.as_deref())?,
            Dot::Tables(pattern) => self.list(TABLES, pattern.as_deref())?,
            Dot::Schema(table) => self.list(SCHEMA, table.as_deref())?,
            Dot::Dump(tables) if self.in_transaction() => dump::write(&self.connection, &tables, &mut self.out)?,
            Dot::Dump(tables) => dump::write(&*self.db.snapshot().wait()?, &tables, &mut self.out)?,
            Dot::Import { file, table, csv, skips } => self.import(&file, table, csv, skips)?,
        }
        Ok(After::Continue)
    }

    fn output(&mut self, file: Option<&str>, once: bool) -> Outcome {
        self.out.flush()?;
        self.once = once;
        self.out = match file {
            Some(file) => Out::new(File::create(file).map_err(Failure::system(format!("making {file}")))?),
            None => Out::stdout(),
        };
        Ok(())
    }

    /// Prints the first column of a query, a line for each row.
    fn list(&mut self, sql: &str, name: Option<&str>) -> Outcome {
        let lines: Vec<String> = match sql.contains("?1") {
            true => self.connection.query_values(sql, (name,)).wait()?,
            false => self.connection.query_values(sql, ()).wait()?,
        };
        for line in lines {
            self.out.text(&line);
            self.out.text("\n");
        }
        self.printed()
    }

    fn import(&mut self, name: &str, table: String, csv: bool, skips: bool) -> Outcome {
        if self.in_transaction() {
            return Err(Failure::Usage("an import has transactions of its own: COMMIT or ROLLBACK first".to_owned()));
        }
        let is_there = "SELECT count(*) > 0 FROM pragma_table_list WHERE schema = 'main' AND name = ?";
        let creates = !self.db.query_value::<bool>(is_there, (&table,)).wait()?;
        let separator = match self.format {
            _ if csv => b',',
            Format::Tabs => b'\t',
            Format::List => b'|',
            _ => b',',
        };
        let input = Input {
            name: name.to_owned(),
            form: Form::Csv,
            separator,
            headers: creates || skips,
            empty_is_null: false,
        };
        let target = Target { table, creates, types: Vec::new(), conflict: Conflict::Abort, atomic: false };
        let file = File::open(name).map_err(Failure::system(format!("opening {name}")))?;
        import(&self.db, BufReader::new(file), &input, &target)?;
        Ok(())
    }
}

/// Interrupts what runs until the shell has seen that: a statement may begin just behind an interrupt.
fn interrupts(connection: &Connection) {
    while interrupt::came() {
        connection.interrupt();
        std::thread::sleep(Duration::from_millis(20));
    }
}

const TABLES: &str =
    "SELECT name FROM pragma_table_list WHERE schema IN ('main', 'temp') AND type IN ('table', 'view', 'virtual')
    AND name NOT GLOB 'sqlite_*' AND (?1 IS NULL OR name LIKE ?1) ORDER BY name";
const INDEXES: &str = "SELECT name FROM sqlite_schema WHERE type = 'index' AND (?1 IS NULL OR tbl_name = ?1 COLLATE NOCASE) ORDER BY name";
const SCHEMA: &str = "SELECT sql || ';' FROM (SELECT *, rowid AS at FROM main.sqlite_schema UNION ALL
    SELECT *, rowid FROM temp.sqlite_schema) WHERE sql NOT NULL AND name NOT GLOB 'sqlite_*'
    AND (?1 IS NULL OR tbl_name LIKE ?1) ORDER BY tbl_name, type <> 'table', at";
