//! What the surface of node-sqlite3 is told of its connection.
//!
//! Owns: the events of a connection until JavaScript takes them, which it does after each of its calls. Noted on the threads that run
//! statements, taken on the loop's. Invariant: what nobody listens to is not noted. Leaves out: emitting them.

use std::sync::{Arc, Mutex, PoisonError};

use flatwater::bindings::functions::Callbacks;

use crate::capi::value::{Env, Result, Value};

const TRACE: u32 = 1;
const PROFILE: u32 = 2;
const CHANGE: u32 = 4;

/// An event of a connection.
pub(crate) enum Event {
    /// The text of a statement, and the same with its values.
    Trace(String, String),
    /// The text, and how many milliseconds it took.
    Profile(String, f64),
    Change(&'static str, String, String, i64),
}

/// The events of a connection that were not taken yet.
#[derive(Clone, Default)]
pub(crate) struct Told(Arc<Mutex<Vec<Event>>>);

impl Told {
    fn note(&self, event: Event) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(event);
    }

    /// Returns what was noted since the last call.
    pub(crate) fn take(&self) -> Vec<Event> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Has these events noted, as bits, and no others.
    pub(crate) fn listen(&self, events: u32, callbacks: &mut Callbacks) {
        let told = || self.clone();
        callbacks.trace = (events & TRACE != 0).then(|| {
            let told = told();
            Arc::new(move |sql: &str, said: &str| told.note(Event::Trace(sql.to_owned(), said.to_owned()))) as _
        });
        callbacks.profile = (events & PROFILE != 0).then(|| {
            let told = told();
            Arc::new(move |sql: &str, took: std::time::Duration| {
                told.note(Event::Profile(sql.to_owned(), took.as_secs_f64() * 1_000.0));
            }) as _
        });
        callbacks.changed = (events & CHANGE != 0).then(|| {
            let told = told();
            Arc::new(move |action, database: &str, table: &str, rowid| {
                told.note(Event::Change(action, database.to_owned(), table.to_owned(), rowid));
            }) as _
        });
    }
}

impl Event {
    /// Its name, and what it says.
    pub(crate) fn array<'e>(&self, env: Env<'e>) -> Result<Value<'e>> {
        match self {
            Self::Trace(sql, said) => env.array([env.text("trace"), env.text(sql), env.text(said)].into_iter()),
            Self::Profile(sql, took) => env.array([env.text("profile"), env.text(sql), env.number(*took)].into_iter()),
            Self::Change(action, database, table, rowid) => {
                let rowid = env.number(*rowid as f64);
                let of = [env.text("change"), env.text(action), env.text(database), env.text(table), rowid];
                env.array(of.into_iter())
            }
        }
    }
}
