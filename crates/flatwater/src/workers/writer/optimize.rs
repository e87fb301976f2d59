//! The statistics of the query planner, which are brought up to date from time to time and when the database is closed.
//!
//! Owns: `PRAGMA optimize`, when it is due, and what keeps it from running. Runs on the thread that holds the slot; what is
//! due is asked for on the timer's thread. Invariants: a close takes no longer for it than `AT_CLOSE`, and waits for no
//! lock; between two writes it takes no longer than `MEANWHILE`; where nothing may be written any more, where another
//! program copies the WAL, and while the database is parked, it does not run. Leaves out: the timer (`time::recurring`).
//!
//! SQLite looks at all tables for the bit 0x10000, because the queries of a program run on other connections than this
//! one. The bit 0x10 limits how many rows of an index are read.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::Writer;
use super::writer_connection::WriterConnection;
use crate::queue::ticket::{CallOptions, Ticket};
use crate::workers::request::{ReplyTo, Request};
use crate::workers::work::{Wanted, Work};
use flatwater_base::time::later;
use flatwater_base::values::params::Params;

const OPTIMIZE: &str = "PRAGMA main.optimize(0x10012)";
const AT_CLOSE: Duration = Duration::from_millis(200);
const MEANWHILE: Duration = Duration::from_secs(1);

/// Lets it run as often as the options say, unless the database is parked.
pub(crate) fn optimize_again_and_again(writer: &Writer) {
    let Some(every) = writer.0.context.options.optimize_every.filter(|_| !writer.0.context.is_external()) else {
        return;
    };
    let of = Arc::downgrade(&writer.0);
    writer.0.optimizes.by(later(Instant::now(), every), move || {
        let writer = Writer(of.upgrade()?);
        if !writer.0.context.watch.as_ref().is_some_and(|watch| watch.parked.is_set()) {
            ask(&writer);
        }
        Some(later(Instant::now(), every))
    });
}

/// Nobody waits for the answer. A closed queue refuses it.
fn ask(writer: &Writer) {
    let text = writer.0.context.catalogue.text(OPTIMIZE);
    // It has a column, and no rows.
    let work = Work::query(text, Params::default(), Wanted::All);
    let _ = writer.push(Request::new(limited(MEANWHILE), work, ReplyTo::Nobody));
}

/// Called when the connection is about to be closed, and may take so long for it.
pub(crate) fn at_close(writer: &mut WriterConnection, wait: Duration) {
    let is_wanted = writer.options().optimize_every.is_some() && !writer.is_in_memory();
    if !is_wanted || writer.context.is_external() || writer.refusal().is_some() {
        return;
    }
    writer.end_lease();
    writer.busy_timeout.never();
    let Some(connection) = &mut writer.connection else { return };
    let ends = limited(AT_CLOSE.min(wait));
    if !ends.start() {
        return;
    }
    connection.sqlite.hooks().interrupts.arm(ends);
    // What was not done now is due at the next close.
    let _ = connection.sqlite.execute_batch(OPTIMIZE);
    connection.sqlite.hooks().interrupts.disarm();
}

fn limited(time: Duration) -> Arc<Ticket> {
    let options = CallOptions { alone: true, ..CallOptions::within(Some(time)) };
    Arc::new(Ticket::new(options, Instant::now()))
}
