//! Arguments of which there may be many: rows of parameters, and the statements of a batch.
//!
//! Owns: taking them from arrays in slices, between which other tasks run. Runs on the loop's thread. Invariants: the call takes its
//! place in the queue when it has the last one; what is refused is named by its number. Leaves out: iterables, which JavaScript makes
//! arrays of.

use flatwater::Params;
use flatwater::bindings::{BatchStatements, ParamRows, add_row, rows_added, rows_of_next, statements_added, take_row};
use flatwater_bridge::Slice;

use crate::calls::{gone, integers, set_place, timed};
use crate::capi::function::Call;
use crate::capi::value::{Env, Kind, Result, Value};
use crate::failure::Failure;
use crate::handles::Handle;
use crate::host::Host;
use crate::params;

type Answer<'e> = Result<Value<'e>>;

/// `rows(sql)`: the number of rows to be filled; or of statements, without a text.
pub(crate) fn rows<'e>(call: &Call<'e, Host>) -> Answer<'e> {
    let sql = call.argument::<0>();
    let many = match call.env.kind(sql) {
        Kind::String => Handle::Rows { sql: call.text::<0>()?, rows: ParamRows::default(), row: Params::default() },
        _ => Handle::Statements(BatchStatements::default()),
    };
    call.env.number(call.host.handles.add(many))
}

/// `add(rows, array, from)`: takes from the array until it is empty or the slice is over. Returns where to go on.
pub(crate) fn add<'e>(call: &Call<'e, Host>) -> Answer<'e> {
    let (env, host, given) = (call.env, call.host, call.argument::<1>());
    let number = call.number::<0>()?;
    // Out of the table, because reading the array may run code of the program.
    let nothing = || Handle::Statements(BatchStatements::default());
    let Some(mut many) = host.handles.get(number).map(|mut many| std::mem::replace(&mut *many, nothing())) else {
        return host.failed(env, gone());
    };
    let (mut at, length) = (call.number::<2>()? as u32, env.array_length(given).unwrap_or(0));
    let mut slice = Slice::begin();
    let mut failed = None;
    while at < length && failed.is_none() {
        failed = env.scoped(|| many_one(env, &mut many, given, at)).err();
        at += 1;
        if slice.is_over() {
            break;
        }
    }
    if let Some(mut place) = host.handles.get(number) {
        *place = many;
    }
    match failed {
        Some(failure) => host.failed(env, failure),
        None => env.number(f64::from(at)),
    }
}

fn many_one<'e>(env: Env<'e>, many: &mut Handle, given: Value<'e>, at: u32) -> Result<(), Failure> {
    let unreadable = |_| Failure::misuse("the array could not be read", None);
    let one = env.element(given, at).map_err(unreadable)?;
    match many {
        Handle::Rows { rows, row, .. } => {
            params::fill(env, row, one).map_err(|failure| failure.at("row", rows_added(rows)))?;
            add_row(rows, row);
        }
        Handle::Statements(all) => {
            let (sql, params) = if env.array_length(one).is_some() {
                (env.element(one, 0).map_err(unreadable)?, Some(env.element(one, 1).map_err(unreadable)?))
            } else {
                (one, None)
            };
            let number = statements_added(all);
            let no_sql = || {
                let message = format!("statement {number} must be SQL, or an array of SQL and parameters");
                Failure::misuse(message, None)
            };
            if env.kind(sql) != Kind::String {
                return Err(no_sql());
            }
            let params = params.map_or_else(|| Ok(Params::default()), |params| params::of(env, params));
            let params = params.map_err(|failure| failure.at("statement", number))?;
            env.with_text(sql, |sql| take_row(rows_of_next(all, sql), params)).map_err(|_| no_sql())?;
        }
        _ => {}
    }
    Ok(())
}

/// `runMany(rows, target, timeout, place, integers)`: `executeMany` or `batch`.
pub(crate) fn run<'e>(call: &Call<'e, Host>) -> Answer<'e> {
    let (env, host) = (call.env, call.host);
    let Some(many) = host.handles.take(call.number::<0>()?) else { return host.failed(env, gone()) };
    let made = match host.handles.get(call.number::<1>()?).as_deref().and_then(Handle::target) {
        None => None,
        Some(target) => match many {
            Handle::Rows { sql, rows, .. } => Some(target.execute_many(&sql, Ok(rows))),
            Handle::Statements(all) => Some(target.batch(all)),
            _ => None,
        },
    };
    let Some(made) = made else { return host.failed(env, gone()) };
    let mut made = timed(made, call.number::<2>()?);
    set_place(host, made.unbegun(), call.number::<3>()?);
    host.begin(env, made, integers(call.number::<4>()?))
}
