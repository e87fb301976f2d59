//! `flatwater live`: the rows of a query that change, until Ctrl-C.
//!
//! Owns: the form of a change. Invariants: a query whose rows have no key is shown whole each time; what cannot be read for a moment is
//! shown as an error, and the query goes on. Leaves out: noticing changes.

use std::time::Duration;

use clap::ValueEnum;
use flatwater::live::{Change, RowChanges};
use flatwater::{Database, Error, ErrorCode, Live, Params, Row, Rows, Value};

use crate::failure::{Failure, Outcome};
use crate::interrupt;
use crate::output::style::{self, Paint};
use crate::output::text::{cell, visible};
use crate::output::{Out, json};
use crate::place::Place;
use crate::sql::parameters::{Parameters, named};

/// Print the result of a query, and each change of it, until Ctrl-C
///
/// Changes by other processes are noticed within milliseconds. Rows are told apart by a primary key that the query selects.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    place: Place,

    /// One statement that reads
    sql: String,

    /// Values for the parameters of the statement, in their order
    #[arg(allow_negative_numbers = true)]
    values: Vec<String>,

    /// A value for a parameter, by name
    #[arg(short, long = "param", value_name = "NAME=VALUE", value_parser = named)]
    params: Vec<(String, Value)>,

    /// How changes are printed: `text` on a terminal, and `jsonl` otherwise
    #[arg(short = 'o', long)]
    format: Option<Form>,

    /// Print at most one change in so many milliseconds, the newest
    #[arg(long, value_name = "MS", default_value_t = 0)]
    throttle: u64,

    /// End after so many results and changes
    #[arg(long, value_name = "N")]
    count: Option<u64>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Form {
    /// Rows with `+`, `~` and `-` before them
    Text,
    /// An object on a line for each row: `change` is `full`, `insert`, `update` or `delete`
    Jsonl,
}

pub(crate) fn run(arguments: &Arguments) -> Outcome {
    let parameters = Parameters::new(&arguments.values, &arguments.params, &arguments.sql)?;
    let params = parameters.of(&arguments.sql)?;
    let db = arguments.place.reader()?;
    interrupt::closes(&db)?;
    let journal = db.stats().journal;
    if journal != "wal" {
        let message = format!("changes of other processes cannot be noticed in the journal mode {journal}");
        return Err(Failure::Refused(message));
    }
    let form = arguments.format.unwrap_or(if style::is_terminal() { Form::Text } else { Form::Jsonl });
    let mut printer = Printer { form, paint: style::output(), out: Out::stdout() };
    let changes = throttled(live(&db, arguments, &params).changes(), arguments);
    let followed = pollster::block_on(follow(changes, arguments, &mut printer, Printer::change));
    let followed = match followed {
        Err(error) if error.code() == Some(ErrorCode::NoRowKey) => {
            let whole = throttled(live(&db, arguments, &params), arguments);
            pollster::block_on(follow(whole, arguments, &mut printer, |printer, rows| printer.full(&rows)))
        }
        other => other,
    };
    followed.map_err(|error| match error {
        End::Database(error) => Failure::of_statement(error, &arguments.sql, 0),
        End::Printing(failure) => failure,
    })?;
    if interrupt::came() { Err(Failure::Interrupted) } else { Ok(db.close().wait()?) }
}

fn live(db: &Database, arguments: &Arguments, params: &Params) -> Live {
    db.live(&arguments.sql, params.clone())
}

fn throttled<T>(live: Live<T>, arguments: &Arguments) -> Live<T> {
    if arguments.throttle == 0 { live } else { live.throttle(Duration::from_millis(arguments.throttle)) }
}

/// Why a live query is over.
enum End {
    Database(Error),
    Printing(Failure),
}

impl End {
    fn code(&self) -> Option<ErrorCode> {
        if let Self::Database(error) = self { error.code() } else { None }
    }
}

async fn follow<T>(
    mut live: Live<T>,
    arguments: &Arguments,
    printer: &mut Printer,
    print: impl Fn(&mut Printer, T) -> Outcome,
) -> Result<(), End> {
    let mut left = arguments.count.unwrap_or(u64::MAX);
    let mut failed = None;
    while left > 0 {
        match live.next().await {
            Some(Ok(result)) => {
                print(printer, result).and_then(|()| printer.out.flush()).map_err(End::Printing)?;
                (left, failed) = (left - 1, None);
            }
            Some(Err(error)) => failed = Some(error),
            None => return failed.map_or(Ok(()), |error| Err(End::Database(error))),
        }
        if let Some(error) = &failed
            && error.code() != Some(ErrorCode::NoRowKey)
        {
            eprint!("{}", Failure::of_statement(error.clone(), &arguments.sql, 0).text(style::errors()));
        }
    }
    Ok(())
}

struct Printer {
    form: Form,
    paint: Paint,
    out: Out,
}

impl Printer {
    fn change(&mut self, change: Change) -> Outcome {
        match change {
            Change::Full(rows) => self.full(&rows),
            Change::Rows(changes) => self.rows(&changes),
        }
    }

    fn full(&mut self, rows: &Rows) -> Outcome {
        if self.form == Form::Text {
            let text = format!("-- {} rows", rows.len());
            self.out.text(&self.paint.dim(&text));
            self.out.text("\n");
            for row in rows {
                self.text("  ", &row);
            }
            return Ok(());
        }
        self.out.text("{\"change\":\"full\",\"rows\":[");
        for (at, row) in rows.iter().enumerate() {
            if at > 0 {
                self.out.text(",");
            }
            json::object(&row, &mut self.out.buffer);
        }
        self.out.text("]}\n");
        Ok(())
    }

    fn rows(&mut self, changes: &RowChanges) -> Outcome {
        for row in changes.deleted() {
            self.one("delete", "- ", &row, None);
        }
        for row in changes.updated() {
            self.one("update", "~ ", &row.new, Some(&row.old));
        }
        for row in changes.inserted() {
            self.one("insert", "+ ", &row, None);
        }
        Ok(())
    }

    fn one(&mut self, change: &str, sign: &str, row: &Row<'_>, old: Option<&Row<'_>>) {
        if self.form == Form::Text {
            return self.text(sign, row);
        }
        self.out.text(&format!("{{\"change\":\"{change}\",\"row\":"));
        json::object(row, &mut self.out.buffer);
        if let Some(old) = old {
            self.out.text(",\"old\":");
            json::object(old, &mut self.out.buffer);
        }
        self.out.text("}\n");
    }

    fn text(&mut self, sign: &str, row: &Row<'_>) {
        let cells = row.columns().zip(row.values()).map(|(name, value)| format!("{}={}", visible(name), cell(value)));
        let line = format!("{sign}{}", cells.collect::<Vec<_>>().join("  "));
        let line = match sign {
            "+ " => self.paint.good(&line),
            "- " => self.paint.error(&line),
            "~ " => self.paint.warning(&line),
            _ => line,
        };
        self.out.text(&line);
        self.out.text("\n");
    }
}
