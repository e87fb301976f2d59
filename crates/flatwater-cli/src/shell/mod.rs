//! `flatwater shell`: statements and commands, typed one after the other.
//!
//! Owns: the loop, on a terminal and for a script. Runs on the main thread. Invariants: Ctrl-C ends the statement that runs, and not the
//! shell; an error ends a script, and not the shell. Leaves out: editing (`editor`), and what a line does (`session`).

mod completer;
mod dot;
mod editor;
mod highlight;
mod session;
mod words;

use std::io::{IsTerminal, Read};

use self::dot::After;
use self::editor::{Editor, Typed};
use self::session::Session;
use crate::failure::{Failure, Outcome};
use crate::interrupt;
use crate::output::Format;
use crate::output::style;
use crate::place::Place;

/// Type SQL, and commands such as `.tables`; `.help` lists them
///
/// BEGIN and COMMIT, TEMP tables and ATTACH work as in the `sqlite3` shell. The history is in the state folder of the user.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    place: Place,

    /// How results are printed
    #[arg(short = 'o', long)]
    format: Option<Format>,

    /// Refuse statements that write
    #[arg(long, conflicts_with = "create")]
    read_only: bool,

    /// Make the database if there is none
    #[arg(long)]
    create: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Outcome {
    let place = &arguments.place;
    let db = if arguments.read_only { place.reader()? } else { place.writer(arguments.create)? };
    let mut session = Session::new(db, arguments.format.unwrap_or_else(Format::of_output))?;
    let ran = if std::io::stdin().is_terminal() { typed(&mut session, place) } else { script(&mut session) };
    session.close()?;
    ran
}

fn typed(session: &mut Session, place: &Place) -> Outcome {
    say!("{} {}, SQLite {}", place.path.display(), env!("CARGO_PKG_VERSION"), flatwater::rusqlite::version());
    say!("{}", style::output().dim("SQL ends with a semicolon. .help lists commands, .quit or Ctrl-D ends."));
    let mut editor = Editor::new(session.db())?;
    loop {
        let text = match editor.read(session.in_transaction())? {
            Typed::Text(text) => text,
            Typed::Cleared => continue,
            Typed::End => return Ok(()),
        };
        interrupt::forget();
        match session.feed(&text) {
            Ok(After::Continue) => {}
            Ok(After::Quit) => return Ok(()),
            Err(failure) if interrupt::came() => {
                interrupt::forget();
                drop(failure);
                eprintln!("interrupted");
            }
            Err(failure) => eprint!("{}", failure.text(style::errors())),
        }
    }
}

fn script(session: &mut Session) -> Outcome {
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text).map_err(Failure::system("reading standard input"))?;
    session.feed(&text).map(drop)
}
