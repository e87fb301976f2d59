//! The functions of the module that make calls.
//!
//! Owns: the arguments of each. Runs on the loop's thread, and never waits there. Invariants: the arguments are read before anything
//! is borrowed; a wrong one is a failure, as an error of the engine is. Leaves out: what becomes of a call (`host`).

use std::path::Path;
use std::time::Duration;

use flatwater::bindings::{self, FrontCall, JsonOptions, Needed, Target, Unbegun, server};
use flatwater::calls::CheckpointMode;
use flatwater::{ErrorCode, Params};

use crate::capi::function::Call;
use crate::capi::value::{Env, Result, Value};
use crate::failure::Failure;
use crate::handles::Handle;
use crate::host::Host;
use crate::options;
use crate::params;
use crate::reading_as::ReadAs;
use crate::waiting::{Source, Waiting};

type Answer<'e> = Result<Value<'e>>;

/// The deadline of a call. Negative or no number: it has none.
pub(crate) fn timed(call: FrontCall, timeout_ms: f64) -> FrontCall {
    match Duration::try_from_secs_f64(timeout_ms / 1_000.0) {
        Ok(timeout) => call.timeout(timeout),
        Err(_) => call,
    }
}

pub(crate) fn gone() -> Failure {
    Failure::refused(
        ErrorCode::Finished,
        "this object is closed, or its transaction is finished",
        Some("begin another one"),
    )
}

/// `run(operation, target, sql, params, timeout, place, integers, types)`: all operations on a text and its values.
pub(crate) fn run<'e>(call: &Call<'e, Host>) -> Answer<'e> {
    let (env, host) = (call.env, call.host);
    let (operation, number) = (call.number::<0>()? as u32, call.number::<1>()?);
    let (timeout, place) = (call.number::<4>()?, call.number::<5>()?);
    let read_as = ReadAs::new(&host.handles, call.number::<6>()?, call.number::<7>()?);
    let given = call.argument::<3>();
    let of_node_sqlite3 = matches!(operation, 21 | 22);
    let read =
        if of_node_sqlite3 { params::with_reals(env, given) } else { params::of(env, given, read_as.has_types()) };
    let params = match read {
        Ok(params) => params,
        Err(failure) => {
            let sql = env.with_text(call.argument::<2>(), str::to_owned).ok();
            return host.failed(env, failure.of(sql.as_deref()));
        }
    };
    let made = env.with_text(call.argument::<2>(), |sql| {
        let handle = host.handles.get(number);
        handle.as_deref().and_then(Handle::target).map(|target| operate(target, operation, sql, params))
    });
    let mut call = match made {
        Ok(Some(Ok(call))) => timed(call, timeout),
        Ok(Some(Err(failure))) => return host.failed(env, failure),
        Ok(None) => return host.failed(env, gone()),
        Err(_) => return Err(env.type_error("the SQL must be a string")),
    };
    set_place(host, call.unbegun(), place);
    let waiting = Waiting::new(Source::Call(call), read_as);
    let holds = matches!(operation, BEGIN | SNAPSHOT);
    host.begin(env, Waiting { place, holds, ..waiting })
}

const BEGIN: u32 = 10;
const SNAPSHOT: u32 = 11;

fn operate(target: &Target, operation: u32, sql: &str, params: Params) -> Result<FrontCall, Failure> {
    Ok(match operation {
        0 => target.execute(sql, params),
        1 => target.query_in_parts("query", sql, params),
        2 | 22 => target.query("queryOptional", sql, params, Needed::First),
        3 => target.query("queryOne", sql, params, Needed::Row),
        4 => target.query("queryValue", sql, params, Needed::Value),
        5 => target.query("queryOptionalValue", sql, params, Needed::First),
        6 => target.execute_script(sql),
        7 => target.prepare(sql),
        BEGIN => target.begin(None),
        SNAPSHOT => target.snapshot(),
        12 => target.backup(Path::new(sql)),
        13 => target.checkpoint(match sql {
            "full" => CheckpointMode::Full,
            "restart" => CheckpointMode::Restart,
            "truncate" => CheckpointMode::Truncate,
            _ => CheckpointMode::Passive,
        }),
        14 => target.vacuum(),
        15 => target.vacuum_into(Path::new(sql)),
        16 => target.incremental_vacuum(sql.parse().unwrap_or(0)),
        17 => target.serialize(),
        18 => target.columns(sql),
        19 | 21 => target.run(sql, params),
        // The same, telling how far it is.
        20 => target.backup_in_parts(Path::new(sql)),
        _ => return Err(Failure::refused(ErrorCode::Internal, "there is no such operation", None)),
    })
}

/// `queryJson(target, sql, params, timeout, place, form, embedded, types)`
pub(crate) fn query_json<'e>(call: &Call<'e, Host>) -> Answer<'e> {
    let (env, host) = (call.env, call.host);
    let (number, sql) = (call.number::<0>()?, call.text::<1>()?);
    let (timeout, place, form) = (call.number::<3>()?, call.number::<4>()?, call.number::<5>()?);
    let has_types = call.number::<7>()? >= 0.0;
    let params = match params::of(env, call.argument::<2>(), has_types) {
        Ok(params) => params,
        Err(failure) => return host.failed(env, failure.of(Some(&sql))),
    };
    let options = json_options(env, form, call.argument::<6>())?;
    let handle = host.handles.get(number);
    let made = handle.as_deref().and_then(Handle::target).map(|target| target.query_json(&sql, params, options));
    drop(handle);
    let Some(made) = made else { return host.failed(env, gone()) };
    let mut made = timed(made, timeout);
    set_place(host, made.unbegun(), place);
    host.call(env, made)
}

/// `form` is 1 for arrays, and 2 for big integers as strings.
fn json_options<'e>(env: Env<'e>, form: f64, embedded: Value<'e>) -> Result<JsonOptions> {
    let form = form as u32;
    let options = JsonOptions::new().arrays(form & 1 != 0).big_integers_as_strings(form & 2 != 0);
    Ok(env.texts(embedded)?.into_iter().fold(options, JsonOptions::embed))
}

/// The flow of the program that begins the call is inside of the transaction `place`, if that is one, and of those around it.
pub(crate) fn set_place(host: &Host, unbegun: Option<Unbegun<'_>>, place: f64) {
    let Some(mut unbegun) = unbegun else { return };
    let has_connection = unbegun.database().is_none();
    if unbegun.is_outside() && is_inside(host, unbegun.open_database(), place, has_connection) {
        return unbegun.set_inside_body();
    }
    let mut at = place;
    loop {
        at = match host.handles.get(at).as_deref() {
            Some(Handle::Transaction { transaction, .. })
                if unbegun.database().is_none() && unbegun.may_be_nested() && unbegun.set_nested(transaction) =>
            {
                return;
            }
            Some(Handle::Transaction { around, .. } | Handle::Connection { around, .. }) => *around,
            _ => return,
        };
    }
}

/// True if the transaction `place`, or one around it, is open on this database: what would wait for its end is refused. Who has a
/// connection for migrations is in a transaction of it; what runs on such a connection waits for no other.
pub(crate) fn is_inside(host: &Host, database: usize, place: f64, has_connection: bool) -> bool {
    let mut at = place;
    loop {
        at = match host.handles.get(at).as_deref() {
            Some(Handle::Transaction { target, .. }) if database == target.database() && target.in_transaction() => {
                return true;
            }
            Some(Handle::Connection { target, .. }) if database == target.database() => return !has_connection,
            Some(Handle::Transaction { around, .. } | Handle::Connection { around, .. }) => *around,
            _ => return false,
        };
    }
}

/// `migrate(target, migrations, ignores, timeout, place)`: `ignores` those that were applied and are not in the list.
pub(crate) fn migrate<'e>(call: &Call<'e, Host>) -> Answer<'e> {
    let (env, host) = (call.env, call.host);
    let migrations = match options::migrations(env, call.argument::<1>()) {
        Ok(migrations) => migrations.ignore_missing(env.as_bool(call.argument::<2>())?),
        Err(failure) => return host.failed(env, failure),
    };
    let (number, timeout, place) = (call.number::<0>()?, call.number::<3>()?, call.number::<4>()?);
    let migrating =
        host.handles.get(number).as_deref().and_then(Handle::target).map(|target| target.migrate(migrations));
    let Some(migrating) = migrating else { return host.failed(env, gone()) };
    let mut migrating = timed(migrating, timeout);
    set_place(host, migrating.unbegun(), place);
    host.call(env, migrating)
}

/// `batches(target, sql, params, place, timeout, types, form, embedded)`: the number of what goes on. The deadline is that of each batch. With a
/// form the batches are JSON.
pub(crate) fn batches<'e>(call: &Call<'e, Host>) -> Answer<'e> {
    let (env, host) = (call.env, call.host);
    let (number, sql) = (call.number::<0>()?, call.text::<1>()?);
    let params = match params::of(env, call.argument::<2>(), call.number::<5>()? >= 0.0) {
        Ok(params) => params,
        Err(failure) => return host.failed(env, failure.of(Some(&sql))),
    };
    let timeout = Duration::try_from_secs_f64(call.number::<4>()? / 1_000.0);
    let batches = host.handles.get(number).as_deref().and_then(Handle::target).map(|target| match timeout {
        Ok(timeout) => target.timeout(timeout).batches(&sql, params),
        Err(_) => target.batches(&sql, params),
    });
    let Some(mut batches) = batches else { return host.failed(env, gone()) };
    set_place(host, bindings::unbegun(&mut batches), call.number::<3>()?);
    let batches = match call.number::<6>() {
        Ok(form) => Handle::Json(batches, json_options(env, form, call.argument::<7>())?),
        Err(_) => Handle::Batches(batches, 0),
    };
    env.number(host.handles.add(batches))
}

/// `live(database, [sql, params, ...], debounce, throttle, changes, types)`: the number of what goes on.
pub(crate) fn live<'e>(call: &Call<'e, Host>) -> Answer<'e> {
    let (env, host) = (call.env, call.host);
    let (given, has_types) = (call.argument::<1>(), call.number::<5>()? >= 0.0);
    let mut queries = Vec::new();
    for index in (0..env.array_length(given).unwrap_or(0)).step_by(2) {
        let sql = env.with_text(env.element(given, index)?, str::to_owned);
        let Ok(sql) = sql else { return Err(env.type_error("the SQL must be a string")) };
        match params::of(env, env.element(given, index + 1)?, has_types) {
            Ok(params) => queries.push((sql, params)),
            Err(failure) => return host.failed(env, failure.of(Some(&sql))),
        }
    }
    let pace = |ms: f64| Duration::try_from_secs_f64(ms / 1_000.0).unwrap_or_default();
    let (debounce, throttle, changes) = (pace(call.number::<2>()?), pace(call.number::<3>()?), call.argument::<4>());
    let changes = env.as_bool(changes)?;
    let live = match host.handles.get(call.number::<0>()?).as_deref() {
        Some(Handle::Database { database, .. }) if changes => {
            let (sql, params) = queries.into_iter().next().unwrap_or_default();
            let live = server::live(database.session(), &*sql, params);
            Handle::Changes(live.debounce(debounce).throttle(throttle).changes())
        }
        Some(Handle::Database { database, .. }) => {
            Handle::Live(server::live_group(database.session(), queries).debounce(debounce).throttle(throttle))
        }
        _ => return host.failed(env, gone()),
    };
    env.number(host.handles.add(live))
}

/// `next(handle, integers, place, types)`: the next batch, or the next result of a live query.
pub(crate) fn next<'e>(call: &Call<'e, Host>) -> Answer<'e> {
    let (env, host, number) = (call.env, call.host, call.number::<0>()?);
    let place = call.number::<2>()?;
    let unbegun = host.handles.get(number).and_then(|mut of| of.unbegun_live()?.database());
    if unbegun.is_some_and(|database| is_inside(host, database, place, false))
        && let Some(mut of) = host.handles.get(number)
        && let Some(mut live) = of.unbegun_live()
    {
        live.set_inside_body();
    }
    host.begin(
        env,
        Waiting::new(Source::Next(number), ReadAs::new(&host.handles, call.number::<1>()?, call.number::<3>()?)),
    )
}
