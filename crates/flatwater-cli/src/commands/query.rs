//! `flatwater query`: runs SQL and prints the results.
//!
//! Owns: where the SQL comes from. Leaves out: running it (`sql::runner`), and its form (`output`).

use std::io::{IsTerminal, Read};
use std::path::{Path, PathBuf};

use flatwater::Value;

use crate::failure::{Failure, Outcome};
use crate::output::{Format, Out};
use crate::place::Place;
use crate::sql::parameters::{Parameters, named};
use crate::sql::runner::{Rights, Runner};
use crate::sql::statements::statements;

/// Run SQL and print the results
///
/// Results are streamed. The format is `box` on a terminal and `csv` otherwise. A file that is not there is an error, unless
/// `--create` is given.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    place: Place,

    /// The SQL, one statement or several; standard input if there is none
    sql: Option<String>,

    /// Values for the parameters of the statement, in their order
    #[arg(allow_negative_numbers = true)]
    values: Vec<String>,

    /// A value for a parameter, by name
    #[arg(short, long = "param", value_name = "NAME=VALUE", value_parser = named)]
    params: Vec<(String, Value)>,

    /// Read the SQL from a file
    #[arg(short, long, value_name = "FILE", conflicts_with = "sql")]
    file: Option<PathBuf>,

    /// How results are printed
    #[arg(short = 'o', long)]
    format: Option<Format>,

    /// Leave out the names of columns
    #[arg(long)]
    no_header: bool,

    /// Refuse statements that write
    #[arg(long, conflicts_with = "create")]
    read_only: bool,

    /// Make the database if there is none
    #[arg(long)]
    create: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Outcome {
    let text = match (&arguments.sql, &arguments.file) {
        (Some(sql), _) if sql != "-" => sql.clone(),
        (_, Some(file)) => of_file(file)?,
        _ => of_input()?,
    };
    let parameters = Parameters::new(&arguments.values, &arguments.params, &text)?;
    let rights = match (arguments.read_only, arguments.create) {
        (true, _) => Rights::Read,
        (_, true) => Rights::Create,
        _ => Rights::Write,
    };
    let mut sink = arguments.format.unwrap_or_else(Format::of_output).sink(!arguments.no_header);
    let mut out = Out::stdout();
    let mut runner = Runner::open(&arguments.place, rights)?;
    let mut any = false;
    for statement in statements(&text) {
        any = true;
        let params = parameters.of(statement.sql)?;
        let ran = runner.run(statement.sql, params, &mut *sink, &mut out);
        // What was printed before an error is seen before it.
        ran.map_err(|failure| out.flush().err().unwrap_or_else(|| failure.at(&text, statement.begin)))?;
    }
    runner.close()?;
    if any { Ok(()) } else { Err(Failure::Usage("there is no statement in the SQL".to_owned())) }
}

pub(crate) fn of_file(file: &Path) -> Outcome<String> {
    std::fs::read_to_string(file).map_err(Failure::system(format!("reading {}", file.display())))
}

fn of_input() -> Outcome<String> {
    let mut input = std::io::stdin();
    if input.is_terminal() {
        return Err(Failure::Usage("give SQL, or use `flatwater shell`".to_owned()));
    }
    let mut text = String::new();
    input.read_to_string(&mut text).map_err(Failure::system("reading standard input"))?;
    Ok(text)
}
