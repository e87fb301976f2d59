//! Results on their way to JavaScript: numbers in the cells, a text as the value of the call.
//!
//! Owns: what each output looks like there, and the codes. Runs on the loop's thread. Invariants: an answer is read before the next
//! call of the module; rows that do not fit in one chunk stay with their token. Leaves out: which rows are next (`lists`); reading
//! them (`flatwater/values/rows.ts`).
//!
//! | value of a call | meaning | cells |
//! |---|---|---|
//! | a number from 0 on | the call waits under this token | |
//! | `DONE` | it is done | what it returned, if that is numbers |
//! | `FAILED` | `failure()` says why | |
//! | `YIELDS` | the loop's turn is due | the token |
//! | a string | some rows of a list, or none of an empty one | the header of `lists`, forms, cells |
//! | a `Buffer` | JSON | |

use std::sync::Arc;

use flatwater::bindings::{Output, Target};
use flatwater_bridge::{Opened, Text};

use crate::capi::value::{Env, Result, Value};
use crate::codes::{DONE, FAILED};
use crate::failure::Failure;
use crate::handles::Handle;
use crate::host::Host;
use crate::lists::{Lists, TOKEN, executed_numbers};
use crate::waiting::{Source, Waiting};

impl Host {
    pub(crate) fn failed<'e>(&self, env: Env<'e>, failure: impl Into<Failure>) -> Result<Value<'e>> {
        *self.failure.borrow_mut() = Some(failure.into());
        env.number(FAILED)
    }

    pub(crate) fn numbers<'e>(&self, env: Env<'e>, numbers: &[f64]) -> Result<Value<'e>> {
        self.cells.with(|cells| cells.iter_mut().zip(numbers).for_each(|(cell, number)| *cell = *number));
        env.number(DONE)
    }

    /// Answers a call that is over. `token` is its own, if it has one.
    pub(crate) fn answer<'e>(
        &self,
        env: Env<'e>,
        mut of: Waiting,
        token: Option<u64>,
        output: Output,
    ) -> Result<Value<'e>> {
        match output {
            Output::Transaction(_) | Output::Snapshot(_) | Output::Blob(_) if of.is_cancelled => {
                self.forget(token);
                return self.failed(env, Failure::GivenUp);
            }
            Output::Rows(rows) => {
                if let Source::Next(number) = of.source
                    && let Some(mut handle) = self.handles.get(number)
                {
                    of.read_as.before = handle.fetched(rows.len());
                }
                return self.last_lists(env, of, token, Arc::new(rows));
            }
            Output::Live(results) => return self.last_lists(env, of, token, results),
            Output::Change(change) => return self.last_lists(env, of, token, change),
            Output::Batch(results) => return self.last_lists(env, of, token, results),
            Output::Ran(result) => return self.last_lists(env, of, token, result),
            _ => self.forget(token),
        }
        let place = of.place;
        match output {
            Output::Executed(executed) => {
                self.numbers(env, &executed_numbers(executed.changes, executed.last_insert_rowid))
            }
            Output::Changes(changes) => self.numbers(env, &[changes as f64]),
            Output::Json(text) => env.buffer(text.as_bytes()),
            Output::Database(database) => {
                let target = Target::of(&database);
                let id = target.database() as f64;
                let number = self.handles.add(Handle::Database { database: Opened::File(database), target });
                self.numbers(env, &[number, id])
            }
            Output::Transaction(transaction) => {
                let around = place;
                let target = Target::of(&transaction);
                let number = self.handles.add(Handle::Transaction { transaction, target, around });
                self.numbers(env, &[number])
            }
            Output::Snapshot(snapshot) => {
                let target = Target::of(&snapshot);
                let number = self.handles.add(Handle::Snapshot { _snapshot: snapshot, target });
                self.numbers(env, &[number])
            }
            Output::Blob(blob) => {
                let length = blob.len() as f64;
                let number = self.handles.add(Handle::Blob(blob));
                self.numbers(env, &[number, length])
            }
            Output::Bytes(bytes) => env.buffer(&bytes),
            Output::Checkpointed(info) => self.numbers(env, &[f64::from(info.frames), f64::from(info.copied)]),
            Output::Migrated(names) => env.array(names.iter().map(|name| env.text(name))),
            Output::Flag(flag) => self.numbers(env, &[f64::from(u8::from(flag))]),
            // Lists were answered above, and the end of what goes on has none.
            Output::Done(())
            | Output::Rows(_)
            | Output::Live(_)
            | Output::Change(_)
            | Output::Batch(_)
            | Output::Ran(_) => self.numbers(env, &[0.0, 0.0]),
        }
    }

    /// Answers a call that is over but for its lists.
    fn last_lists<'e>(
        &self,
        env: Env<'e>,
        of: Waiting,
        token: Option<u64>,
        lists: impl Into<Lists>,
    ) -> Result<Value<'e>> {
        self.lists(env, Waiting { source: Source::Over, rest: None, ..of }, token, lists.into())
    }

    /// Answers with the next chunk. What is left of the lists, and of the call, has the token.
    pub(crate) fn lists<'e>(
        &self,
        env: Env<'e>,
        mut of: Waiting,
        token: Option<u64>,
        mut lists: Lists,
    ) -> Result<Value<'e>> {
        let mut flat = self.flat.borrow_mut();
        let mut schemas = self.schemas.borrow_mut();
        let has_text = match self.cells.with(|cells| lists.next(&mut flat, &mut schemas, &of.read_as, cells)) {
            Ok(has_text) => has_text,
            Err(failure) => {
                of.give_up();
                self.forget(token);
                return self.failed(env, failure);
            }
        };
        if lists.is_over() {
            // Of a query in parts there may be more.
            of.read_as.before += lists.rows();
            drop(lists);
        } else {
            of.rest = Some(lists);
        }
        if of.rest.is_none() && matches!(of.source, Source::Over) {
            self.forget(token);
        } else {
            let token = self.keep(of, token) as f64;
            self.cells.with(|cells| cells[TOKEN] = token);
        }
        match flat.text() {
            _ if !has_text => env.ascii(b""),
            Text::Ascii(text) => env.ascii(text),
            Text::Wide(text) => env.wide(text),
        }
    }
}
