//! Results on their way to JavaScript: numbers in the cells, a text as the value of the call.
//!
//! Owns: what each output looks like there, and the codes. Runs on the loop's thread. Invariants: an answer is read before the next
//! call of the module; rows that do not fit in one chunk stay with their token. Leaves out: reading it (`flatwater/rows.ts`).
//!
//! | value of a call | meaning | cells |
//! |---|---|---|
//! | a number from 0 on | the call waits under this token | |
//! | `DONE` | it is done | what it returned, if that is numbers |
//! | `FAILED` | `failure()` says why | |
//! | `YIELDS` | the loop's turn is due | the token |
//! | a string | rows | `rows, columns, schema, token or -1, forms, cells` |
//! | a `Buffer` | JSON | |

use std::sync::Arc;

use flatwater::bindings::{ChangedRows, Output, Target, cells, changed_rows, rows_of, shared_rows};
use flatwater::live::Change;
use flatwater::rusqlite::types::ToSqlOutput;
use flatwater::values::ExecuteResult;
use flatwater::{Params, Rows};
use flatwater_bridge::{Refused, Text, exact};

use crate::capi::value::{Env, Result, Value};
use crate::codes::{DONE, FAILED};
use crate::failure::Failure;
use crate::handles::Handle;
use crate::host::Host;
use crate::waiting::{Source, Waiting};

/// Where the forms of a chunk begin.
const HEADER: usize = 4;

/// No rowid, in place of whether it is a number (0) or an integer of 64 bits (1).
const NO_ROWID: f64 = 2.0;

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
        of: Waiting,
        token: Option<u64>,
        output: Output,
    ) -> Result<Value<'e>> {
        match output {
            _ if of.is_cancelled => {
                self.forget(token);
                return self.numbers(env, &[0.0, 0.0]);
            }
            Output::Rows(rows) => {
                let left = Waiting { source: Source::Over, rest: None, ..of };
                return self.rows(env, left, token, Arc::new(rows), 0);
            }
            _ => self.forget(token),
        }
        let place = of.place;
        match output {
            Output::Executed(executed) => self.numbers(env, &executed_numbers(executed)),
            Output::Changes(changes) => self.numbers(env, &[changes as f64]),
            Output::Json(text) => env.buffer(text.as_bytes()),
            Output::Batch(results) => {
                let count = results.len() as f64;
                *self.batch.borrow_mut() = results;
                self.numbers(env, &[count])
            }
            Output::Database(database) => {
                let target = Target::of(&database);
                let id = target.database() as f64;
                let number = self.handles.add(Handle::Database { database, target });
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
            Output::Live(results) => {
                let count = results.len() as f64;
                *self.results.borrow_mut() = results.iter().map(shared_rows).collect();
                self.numbers(env, &[count, 1.0])
            }
            Output::Change(change) => {
                *self.results.borrow_mut() = change_rows(&change);
                let is_full = matches!(change, Change::Full(_));
                self.numbers(env, &[self.results.borrow().len() as f64, 1.0, f64::from(u8::from(is_full))])
            }
            // The end of what goes on is told from a result by the second number.
            Output::Done | Output::Rows(_) => self.numbers(env, &[0.0, 0.0]),
        }
    }

    /// Answers with a chunk of rows from `from` on. What is left of them, and of the call, has the token.
    pub(crate) fn rows<'e>(
        &self,
        env: Env<'e>,
        mut of: Waiting,
        token: Option<u64>,
        rows: Arc<Rows>,
        from: usize,
    ) -> Result<Value<'e>> {
        let columns = rows.columns().len();
        let mut flat = self.flat.borrow_mut();
        let (data, integers) = (HEADER + columns, of.integers);
        let encoded = self.cells.with(|cells| match cells.get_mut(data..) {
            Some(room) => flat.encode(&rows, from, integers, room),
            None => Err(Refused::Wide),
        });
        let count = match encoded {
            Ok(count) => count,
            Err(refused) => {
                of.give_up();
                self.forget(token);
                return self.failed(env, refusal(&rows, refused));
            }
        };
        let schema = self.schemas.borrow_mut().number(&rows);
        let is_over = from + count >= rows.len();
        if !is_over {
            of.rest = Some((rows, from + count));
        }
        let token = if is_over && matches!(of.source, Source::Over) {
            self.forget(token);
            None
        } else {
            Some(self.keep(of, token))
        };
        let header = [count as f64, columns as f64, schema, token.map_or(-1.0, |token| token as f64)];
        self.cells.with(|cells| {
            cells[..HEADER].copy_from_slice(&header);
            for (cell, form) in cells[HEADER..].iter_mut().zip(flat.forms()) {
                *cell = f64::from(*form as u8);
            }
        });
        match flat.text() {
            Text::Ascii(text) => env.ascii(text),
            Text::Wide(text) => env.wide(text),
        }
    }
}

pub(crate) fn executed_numbers(executed: ExecuteResult) -> [f64; 3] {
    let changes = executed.changes as f64;
    match executed.last_insert_rowid.map(|rowid| (rowid, exact(rowid))) {
        None => [changes, 0.0, NO_ROWID],
        Some((_, Some(rowid))) => [changes, rowid, 0.0],
        Some((rowid, None)) => [changes, f64::from_bits(rowid.cast_unsigned()), 1.0],
    }
}

fn refusal(rows: &Rows, refused: Refused) -> Failure {
    match refused {
        Refused::Inexact { column } => {
            let name = rows.columns().nth(column).unwrap_or_default();
            Failure::misuse(
                format!("an integer in column {name:?} is beyond 2^53, and would be rounded as a number"),
                Some("ask for bigints: { integers: 'auto' }, or 'bigint' for all integers"),
            )
        }
        Refused::Wide => Failure::misuse("the result has too many columns", None),
    }
}

/// The full result; or the rows inserted, those updated as they were and as they are, and those deleted.
fn change_rows(change: &Change) -> Vec<Arc<Rows>> {
    match change {
        Change::Full(rows) => vec![shared_rows(rows)],
        Change::Rows(changes) => {
            let ChangedRows { old, new, inserted, updated, deleted } = changed_rows(changes);
            let chosen = |rows: &Rows, positions: &mut dyn Iterator<Item = usize>| {
                let mut values = Params::default();
                for row in positions {
                    for value in cells(rows, row) {
                        // A value of a result is bound as it is.
                        let _ = values.push(ToSqlOutput::Borrowed(value));
                    }
                }
                Arc::new(rows_of(rows.columns().map(Into::into).collect(), values))
            };
            vec![
                chosen(new, &mut inserted.iter().copied()),
                chosen(old, &mut updated.iter().map(|(before, _)| *before)),
                chosen(new, &mut updated.iter().map(|(_, now)| *now)),
                chosen(old, &mut deleted.iter().copied()),
            ]
        }
    }
}
