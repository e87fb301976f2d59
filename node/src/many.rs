//! Arguments of which there may be many: rows of parameters, and the statements of a batch.
//!
//! Owns: taking them from arrays in slices, between which other tasks run. Runs on the loop's thread. Invariants: the call has its
//! place from the beginning on, unless JavaScript says otherwise; what is refused is named by its number. Leaves out: iterables,
//! which JavaScript makes arrays of, and the order of calls (`lines`).

use flatwater::Params;
use flatwater::bindings::{BatchStatements, ParamRows, add_row, rows_added, rows_of_next, statements_added, take_row};
use flatwater_bridge::Slice;

use crate::calls::{gone, set_place, timed};
use crate::capi::function::Call;
use crate::capi::value::{Env, Kind, Result, Value};
use crate::failure::{Failure, half_in};
use crate::handles::{Handle, Many, ManyOf};
use crate::host::Host;
use crate::params;
use crate::reading_as::ReadAs;
use crate::waiting::{Source, Waiting};

type Answer<'e> = Result<Value<'e>>;

/// `rows(target, takesPlace, sql, types)`: the number of rows to be filled; or of statements, without a text. Their call takes its place
/// now, or when it has the last one.
pub(crate) fn rows<'e>(call: &Call<'e, Host>) -> Answer<'e> {
    let (env, host) = (call.env, call.host);
    let (number, takes_place) = (call.number::<0>()?, env.as_bool(call.argument::<1>())?);
    let of = match env.kind(call.argument::<2>()) {
        Kind::String => ManyOf::Rows { sql: call.text::<2>()?, rows: ParamRows::default(), row: Params::default() },
        _ => ManyOf::Statements(BatchStatements::default()),
    };
    let target = host.handles.get(number).as_deref().and_then(Handle::target).cloned();
    let Some(target) = target else { return host.failed(env, gone()) };
    let spot = target.line().filter(|_| takes_place).map(|line| host.lines.read(line));
    env.number(host.handles.add(Handle::Many(Box::new(Many {
        of,
        target,
        spot,
        has_types: call.number::<3>()? >= 0.0,
    }))))
}

/// `add(rows, array, from)`: takes from the array until it is empty or the slice is over. Returns where to go on.
pub(crate) fn add<'e>(call: &Call<'e, Host>) -> Answer<'e> {
    let (env, host, given) = (call.env, call.host, call.argument::<1>());
    let number = call.number::<0>()?;
    // Out of the table, because reading the array may run code of the program.
    let taken = |handle: &mut Handle| match handle {
        Handle::Many(many) => Some((std::mem::replace(&mut many.of, ManyOf::Taken), many.has_types)),
        _ => None,
    };
    let Some((mut of, has_types)) = host.handles.get(number).as_deref_mut().and_then(taken) else {
        return host.failed(env, gone());
    };
    let (mut at, length) = (call.number::<2>()? as u32, env.array_length(given).unwrap_or(0));
    let mut slice = Slice::begin();
    let mut failed = None;
    while at < length && failed.is_none() {
        failed = env.scoped(|| many_one(env, &mut of, has_types, given, at)).err();
        at += 1;
        if slice.is_over() {
            break;
        }
    }
    if let Some(Handle::Many(many)) = host.handles.get(number).as_deref_mut() {
        many.of = of;
    }
    match failed {
        Some(failure) => host.failed(env, failure),
        None => env.number(f64::from(at)),
    }
}

fn many_one<'e>(env: Env<'e>, of: &mut ManyOf, has_types: bool, given: Value<'e>, at: u32) -> Result<(), Failure> {
    let unreadable = |_| Failure::misuse("the array could not be read", None);
    let one = env.element(given, at).map_err(unreadable)?;
    match of {
        ManyOf::Rows { sql, rows, row } => {
            params::fill(env, row, one, has_types)
                .map_err(|failure| failure.at("row", rows_added(rows)).of(Some(sql)))?;
            add_row(rows, row);
        }
        ManyOf::Statements(all) => {
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
            if !env.is_whole(sql) {
                return Err(half_in("the SQL").at("statement", number));
            }
            let params = params.map_or_else(|| Ok(Params::default()), |params| params::of(env, params, has_types));
            let params = params.map_err(|failure| {
                let text = env.with_text(sql, str::to_owned).ok();
                failure.at("statement", number).of(text.as_deref())
            })?;
            env.with_text(sql, |sql| take_row(rows_of_next(all, sql), params)).map_err(|_| no_sql())?;
        }
        ManyOf::Taken => {}
    }
    Ok(())
}

/// `runMany(rows, timeout, place, integers, types, wantsRows)`: `executeMany`, `queryMany` or `batch`.
pub(crate) fn run<'e>(call: &Call<'e, Host>) -> Answer<'e> {
    let (env, host) = (call.env, call.host);
    let Some(Handle::Many(many)) = host.handles.take(call.number::<0>()?) else { return host.failed(env, gone()) };
    let Many { of, target, spot, .. } = *many;
    let made = match of {
        ManyOf::Rows { sql, rows, .. } if env.as_bool(call.argument::<5>())? => target.query_many(&sql, rows),
        ManyOf::Rows { sql, rows, .. } => target.execute_many(&sql, rows),
        ManyOf::Statements(all) => target.batch(all),
        ManyOf::Taken => target.batch(BatchStatements::default()),
    };
    let mut made = timed(made, call.number::<1>()?);
    set_place(host, made.unbegun(), call.number::<2>()?);
    let waiting =
        Waiting::new(Source::Call(made), ReadAs::new(&host.handles, call.number::<3>()?, call.number::<4>()?));
    match spot {
        Some(spot) => host.begin_in_line(env, waiting, spot),
        None => host.begin(env, waiting),
    }
}
