//! Runs statements one after the other.
//!
//! Owns: the handle that they run on. Runs on the main thread, and waits there. Invariants: as long as all statements read, the file is
//! open for reading only, and each result is fetched in batches, so that neither memory nor a writer waits for it; the first statement
//! that such a handle refuses, and all after it, run on one connection of their own, where BEGIN, TEMP objects and ATTACH work as in
//! the `sqlite3` shell. Leaves out: the form of results.

use flatwater::bindings::empty_result;
use flatwater::calls::Batches;
use flatwater::{Connection, Database, Error, ErrorKind, Params, Rows, Session};

use crate::failure::{Failure, Outcome};
use crate::interrupt;
use crate::output::{Out, Sink};
use crate::place::Place;

/// Whether the statements of a command may write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rights {
    Read,
    Write,
    /// And a file that is not there is made.
    Create,
}

enum On {
    Reader(Database),
    Own(Database, Connection),
}

pub(crate) struct Runner {
    place: Place,
    rights: Rights,
    on: On,
}

impl Runner {
    pub(crate) fn open(place: &Place, rights: Rights) -> Outcome<Self> {
        let needs_writer = place.is_in_memory() || rights == Rights::Create && !place.exists();
        let reader = if needs_writer { None } else { Some(place.reader()) };
        let on = match reader {
            Some(Ok(reader)) => {
                interrupt::closes(&reader)?;
                On::Reader(reader)
            }
            // A file that was not closed may have to be repaired first.
            Some(Err(error)) if rights == Rights::Read || !place.exists() => return Err(error),
            _ => own(place, rights)?,
        };
        Ok(Self { place: place.clone(), rights, on })
    }

    /// Runs one statement, and writes its result.
    pub(crate) fn run(&mut self, sql: &str, params: Params, sink: &mut dyn Sink, out: &mut Out) -> Outcome {
        if let On::Reader(reader) = &self.on {
            let mut batches = reader.batches(sql, params.clone());
            match next(&mut batches) {
                Err(error) if error.kind() == ErrorKind::Misuse && self.rights != Rights::Read => {
                    reader.close().wait()?;
                    self.on = own(&self.place, self.rights)?;
                }
                first => return print_batches(first, batches, sink, out),
            }
        }
        let On::Own(_, connection) = &self.on else { unreachable!("a reader has returned") };
        match connection.run(sql, params).wait()?.rows {
            Some(rows) => print(&rows, sink, out),
            None => Ok(()),
        }
    }

    pub(crate) fn close(self) -> Outcome {
        let (On::Reader(db) | On::Own(db, _)) = self.on;
        Ok(db.close().wait()?)
    }
}

fn own(place: &Place, rights: Rights) -> Outcome<On> {
    let db = place.writer(rights == Rights::Create)?;
    interrupt::closes(&db)?;
    let connection = db.connection();
    Ok(On::Own(db, connection))
}

fn next(batches: &mut Batches) -> Result<Option<Rows>, Error> {
    pollster::block_on(batches.next()).transpose()
}

fn print_batches(
    first: Result<Option<Rows>, Error>,
    mut batches: Batches,
    sink: &mut dyn Sink,
    out: &mut Out,
) -> Outcome {
    let Some(mut rows) = first? else {
        return empty_result(&batches).map_or(Ok(()), |rows| print(&rows, sink, out));
    };
    sink.begin(&rows.columns().collect::<Vec<_>>(), out)?;
    let mut is_first = true;
    loop {
        sink.rows(&rows, out)?;
        if std::mem::take(&mut is_first) {
            out.flush()?;
        }
        match next(&mut batches)? {
            Some(more) => rows = more,
            None => return sink.end(out),
        }
    }
}

/// Writes the result of a query, in batches.
pub(crate) fn stream(of: &Session, sql: &str, sink: &mut dyn Sink, out: &mut Out) -> Outcome {
    let mut batches = of.batches(sql, ());
    print_batches(next(&mut batches), batches, sink, out)
}

/// Passes the result of a query to `f`, in batches.
pub(crate) fn batches_of(of: &Session, sql: &str, mut f: impl FnMut(Rows) -> Outcome) -> Outcome {
    let mut batches = of.batches(sql, ());
    while let Some(rows) = next(&mut batches)? {
        f(rows)?;
    }
    Ok(())
}

/// Writes a result that is there. One without columns has no form.
pub(crate) fn print(rows: &Rows, sink: &mut dyn Sink, out: &mut Out) -> Outcome {
    if rows.columns().len() == 0 {
        return Ok(());
    }
    sink.begin(&rows.columns().collect::<Vec<_>>(), out)?;
    if !rows.is_empty() {
        sink.rows(rows, out)?;
    }
    sink.end(out)
}

impl Failure {
    /// Adds the text in which a statement begins at this byte, to an error of the database.
    pub(crate) fn at(self, text: &str, begin: usize) -> Self {
        match self {
            Self::Database(error, None) => Self::of_statement(error, text, begin),
            other => other,
        }
    }
}
