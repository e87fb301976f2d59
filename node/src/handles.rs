//! What the objects of JavaScript stand for, by number.
//!
//! Owns: databases, transactions, snapshots, connections, batches, live queries and rows of parameters of one environment. Runs on its thread.
//! Invariants: a number is of one thing, and of none when that was let go; the databases of an environment that ends are closed, and
//! no others. Leaves out: the objects.

use std::cell::{RefCell, RefMut};
use std::sync::Arc;
use std::task::{Context, Poll};

use flatwater::bindings::{
    BatchStatements, JsonOptions, Output, ParamRows, Target, Unbegun, json_of, line_of, poll_batch, poll_live,
    unbegun_live,
};
use flatwater::calls::{Batches, Blob};
use flatwater::live::{Change, Live, LiveRows};
use flatwater::{Connection, Params, Rows, Snapshot, Transaction};
use flatwater_bridge::{Opened, Tokens};

use crate::functions::modules::Module;
use crate::lines::Spot;
use crate::schemas::Meanings;
use crate::told::Told;

#[allow(clippy::large_enum_variant)]
pub(crate) enum Handle {
    Database {
        database: Opened,
        target: Target,
    },
    /// `around` is the one inside of which it was begun, of this database or another one.
    Transaction {
        transaction: Transaction<'static>,
        target: Target,
        around: f64,
    },
    Snapshot {
        _snapshot: Snapshot,
        target: Target,
    },
    /// A connection of its own. `around` is the transaction inside of which it was made.
    Connection {
        connection: Connection,
        target: Target,
        around: f64,
        told: Told,
    },
    /// And how many of their rows were fetched.
    Batches(Batches, usize),
    /// Batches that leave as JSON.
    Json(Batches, JsonOptions),
    Blob(Blob),
    Live(Live<Vec<LiveRows>>),
    Changes(Live<Change>),
    /// What columns mean.
    Types(Arc<Meanings>),
    /// A module of functions, until the database that is being opened has them.
    Functions(Arc<Module>),
    /// What `executeMany` and `batch` are given, with their place in the line, unless they take it when they have all.
    Many(Box<Many>),
}

/// Rows of parameters, or statements, that are being read.
pub(crate) struct Many {
    pub(crate) of: ManyOf,
    pub(crate) target: Target,
    pub(crate) spot: Option<Spot>,
    /// Arrays and objects are bound as JSON.
    pub(crate) has_types: bool,
}

pub(crate) enum ManyOf {
    Rows {
        sql: String,
        rows: ParamRows,
        row: Params,
    },
    Statements(BatchStatements),
    /// Their array is being read.
    Taken,
}

impl Handle {
    pub(crate) fn target(&self) -> Option<&Target> {
        match self {
            Self::Database { target, .. }
            | Self::Transaction { target, .. }
            | Self::Snapshot { target, .. }
            | Self::Connection { target, .. } => Some(target),
            _ => None,
        }
    }

    /// The queue in which what goes on takes its place, until it has begun.
    pub(crate) fn line(&mut self) -> Option<usize> {
        match self {
            Self::Batches(batches, _) | Self::Json(batches, _) => line_of(batches),
            _ => None,
        }
    }

    /// A live query that was not begun yet.
    pub(crate) fn unbegun_live(&mut self) -> Option<Unbegun<'_>> {
        match self {
            Self::Live(live) => unbegun_live(live),
            Self::Changes(live) => unbegun_live(live),
            _ => None,
        }
    }

    /// How many rows of a result in batches were before these, which were fetched now.
    pub(crate) fn fetched(&mut self, rows: usize) -> usize {
        let Self::Batches(_, before) = self else { return 0 };
        std::mem::replace(before, *before + rows)
    }

    /// The place of rows that are being read.
    pub(crate) fn spot(&self) -> Option<Spot> {
        match self {
            Self::Many(many) => many.spot,
            _ => None,
        }
    }

    /// Polls for the next part of what goes on. `None` if it does not go on.
    pub(crate) fn poll_next(&mut self, context: &mut Context<'_>) -> Option<Poll<flatwater::Result<Output>>> {
        fn output<T>(next: Option<flatwater::Result<T>>, of: fn(T) -> Output) -> flatwater::Result<Output> {
            next.map_or(Ok(Output::Done(())), |next| next.map(of))
        }
        match self {
            Self::Batches(batches, _) => {
                let next = poll_batch(batches, context);
                Some(next.map(|batch| batch.map(|rows| rows.map_or(Output::Done(()), Output::Rows))))
            }
            Self::Json(batches, options) => {
                let json = |rows: Option<Rows>| {
                    rows.map_or(Ok(Output::Done(())), |rows| json_of(&rows, options).map(Output::Json))
                };
                Some(poll_batch(batches, context).map(|batch| batch.and_then(json)))
            }
            Self::Live(live) => Some(poll_live(live, context).map(|next| output(next, Output::Live))),
            Self::Changes(live) => Some(poll_live(live, context).map(|next| output(next, Output::Change))),
            _ => None,
        }
    }
}

#[derive(Default)]
pub(crate) struct Handles(RefCell<Tokens<Handle>>);

impl Handles {
    pub(crate) fn add(&self, handle: Handle) -> f64 {
        self.0.borrow_mut().add(handle) as f64
    }

    pub(crate) fn get(&self, number: f64) -> Option<RefMut<'_, Handle>> {
        RefMut::filter_map(self.0.borrow_mut(), |handles| handles.get_mut(token(number)?)).ok()
    }

    pub(crate) fn take(&self, number: f64) -> Option<Handle> {
        self.0.borrow_mut().take(token(number)?)
    }
}

impl Handles {
    /// Lets everything go, and waits until the databases are closed. Writes that were submitted are finished.
    pub(crate) fn close(&self) {
        let all = self.0.borrow_mut().clear();
        let (databases, others): (Vec<_>, Vec<_>) =
            all.into_iter().partition(|handle| matches!(handle, Handle::Database { .. }));
        // Transactions are rolled back before their databases close.
        drop(others);
        for handle in databases {
            let Handle::Database { database, target } = handle else { continue };
            drop(target);
            database.close_at_exit();
        }
    }
}

impl Drop for Handles {
    fn drop(&mut self) {
        self.close();
    }
}

/// A number of JavaScript as a token: a whole one below 2^53.
pub(crate) fn token(number: f64) -> Option<u64> {
    (number >= 0.0 && number.fract() == 0.0 && number < 9e15).then_some(number as u64)
}
