//! `flatwater import`: rows of a file into a table.
//!
//! Owns: the arguments, and the bar. Leaves out: reading and inserting (`load`).

use std::fs::File;
use std::io::Read;
use std::path::PathBuf;

use crate::failure::{Failure, Outcome};
use crate::interrupt;
use crate::load::table::Conflict;
use crate::load::{Form, Input, Target, import};
use crate::place::Place;
use crate::progress;

/// Import rows of a CSV or JSON lines file into a table, beside programs that write
///
/// Rows are inserted in transactions of about a millisecond. If one is refused, those before it stay, unless `--atomic` is given.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    place: Place,

    /// The file, or `-` for standard input
    file: PathBuf,

    /// The table
    table: String,

    /// The form of the file; by its name if it is not given
    #[arg(short = 'o', long)]
    format: Option<Form>,

    /// The character between two fields of CSV
    #[arg(long, default_value = ",", value_parser = separator)]
    separator: u8,

    /// The first line of CSV has values, and no names
    #[arg(long)]
    no_header: bool,

    /// An empty field of CSV is an empty text, and not NULL
    #[arg(long)]
    keep_empty: bool,

    /// Make the table, and the database, if they are not there
    #[arg(long)]
    create: bool,

    /// The type of a column of the table that is made, such as `price=REAL`
    #[arg(long = "type", value_name = "COLUMN=TYPE", value_parser = pair)]
    types: Vec<(String, String)>,

    /// What happens to a row that a constraint refuses
    #[arg(long, default_value = "abort")]
    on_conflict: Conflict,

    /// Insert all rows, or none, in one transaction, during which nobody else writes
    #[arg(long)]
    atomic: bool,
}

pub(crate) fn separator(text: &str) -> Result<u8, String> {
    match text.as_bytes() {
        _ if text == "\\t" => Ok(b'\t'),
        [byte] => Ok(*byte),
        _ => Err("one ASCII character, or \\t".to_owned()),
    }
}

fn pair(text: &str) -> Result<(String, String), String> {
    let (name, kind) = text.split_once('=').ok_or("write COLUMN=TYPE")?;
    let is_type = !kind.is_empty() && kind.chars().all(|c| c.is_ascii_alphanumeric() || "_ (),".contains(c));
    if is_type {
        Ok((name.to_owned(), kind.to_owned()))
    } else {
        Err("a type has letters, digits and parentheses".to_owned())
    }
}

pub(crate) fn run(arguments: &Arguments) -> Outcome {
    let is_input = arguments.file.as_os_str() == "-";
    let by_name = || match arguments.file.extension().is_some_and(|ending| ending == "jsonl" || ending == "ndjson") {
        true => Form::Jsonl,
        false => Form::Csv,
    };
    let input = Input {
        name: if is_input { "standard input".to_owned() } else { arguments.file.display().to_string() },
        form: arguments.format.unwrap_or_else(by_name),
        separator: arguments.separator,
        headers: !arguments.no_header,
        empty_is_null: !arguments.keep_empty,
    };
    let target = Target {
        table: arguments.table.clone(),
        creates: arguments.create,
        types: arguments.types.clone(),
        conflict: arguments.on_conflict,
        atomic: arguments.atomic,
    };
    let (from, bytes): (Box<dyn Read + Send>, Option<u64>) = if is_input {
        (Box::new(std::io::stdin()), None)
    } else {
        let file = File::open(&arguments.file).map_err(Failure::system(format!("opening {}", input.name)))?;
        let bytes = file.metadata().map(|metadata| metadata.len()).ok();
        (Box::new(file), bytes)
    };
    let db = arguments.place.writer(arguments.create)?;
    interrupt::closes(&db)?;
    let bar = progress::bytes(bytes, "importing");
    let imported = import(&db, bar.wrap_read(from), &input, &target);
    bar.finish_and_clear();
    let rows = imported?;
    eprintln!("{rows} rows into {}", arguments.table);
    Ok(db.close().wait()?)
}
