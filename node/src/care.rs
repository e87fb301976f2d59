//! The functions of the module for what is asked of a database as a whole.
//!
//! Owns: the arguments of each. Runs on the loop's thread, and never waits there. Leaves out: copies and checks, which are calls and
//! queries as others are.

use std::path::Path;

use flatwater::bindings::{self, FrontCall, Target};
use flatwater::options::Key;
use flatwater_bridge::Opened;

use crate::calls::{gone, set_place, timed};
use crate::capi::function::Call;
use crate::capi::value::{Kind, Result, Value};
use crate::handles::Handle;
use crate::host::Host;
use crate::options;

type Answer<'e> = Result<Value<'e>>;

/// `queryPlan(database, sql, timeout, place)`: a buffer.
pub(crate) fn query_plan<'e>(call: &Call<'e, Host>) -> Answer<'e> {
    let (host, sql) = (call.host, call.text::<1>()?);
    let plan = match host.handles.get(call.number::<0>()?).as_deref() {
        Some(Handle::Database { database, .. }) => match database.file("`queryPlan`") {
            Ok(database) => FrontCall::from(database.query_plan(&sql)),
            Err(failure) => return host.failed(call.env, failure),
        },
        _ => return host.failed(call.env, gone()),
    };
    let mut plan = timed(plan, call.number::<2>()?);
    set_place(host, plan.unbegun(), call.number::<3>()?);
    host.call(call.env, plan)
}

/// `export(database, path, key, timeout, place)`: a plain copy without a key.
pub(crate) fn export<'e>(call: &Call<'e, Host>) -> Answer<'e> {
    let (env, host, path) = (call.env, call.host, call.text::<1>()?);
    let key: Option<Key> = match env.kind(call.argument::<2>()) {
        Kind::Undefined | Kind::Null => None,
        _ => match options::key(env, call.argument::<2>()) {
            Ok(key) => Some(key),
            Err(failure) => return host.failed(env, failure),
        },
    };
    let handle = host.handles.get(call.number::<0>()?);
    let export = handle.as_deref().and_then(Handle::target).map(|target| target.export(Path::new(&path), key));
    drop(handle);
    let Some(export) = export else { return host.failed(env, gone()) };
    let mut export = timed(export, call.number::<3>()?);
    set_place(host, export.unbegun(), call.number::<4>()?);
    host.call(env, export)
}

/// `rekey(database, key, timeout, place)`: encrypts it with another key.
pub(crate) fn rekey<'e>(call: &Call<'e, Host>) -> Answer<'e> {
    with_key(call, "`rekey`", Target::rekey)
}

/// `hasKey(database, key, timeout, place)`: whether it has this key.
pub(crate) fn has_key<'e>(call: &Call<'e, Host>) -> Answer<'e> {
    with_key(call, "`hasKey`", Target::has_key)
}

fn with_key<'e>(call: &Call<'e, Host>, what: &str, make: fn(&Target, Key) -> FrontCall) -> Answer<'e> {
    let (env, host) = (call.env, call.host);
    let key = match options::key(env, call.argument::<1>()) {
        Ok(key) => key,
        Err(failure) => return host.failed(env, failure),
    };
    let made = match host.handles.get(call.number::<0>()?).as_deref() {
        Some(Handle::Database { database, target }) => match database.file(what) {
            Ok(_) => make(target, key),
            Err(failure) => return host.failed(env, failure),
        },
        _ => return host.failed(env, gone()),
    };
    let mut made = timed(made, call.number::<2>()?);
    set_place(host, made.unbegun(), call.number::<3>()?);
    host.call(env, made)
}

/// `pagesSql(database, name)`: the query that tells which pages of an encrypted database cannot be decrypted; undefined for another one.
pub(crate) fn pages_sql<'e>(call: &Call<'e, Host>) -> Answer<'e> {
    let name = call.text::<1>()?;
    let sql = match call.host.handles.get(call.number::<0>()?).as_deref() {
        Some(Handle::Database { database: Opened::File(_), target }) => bindings::pages_sql(target, &name),
        _ => None,
    };
    sql.map_or_else(|| call.env.undefined(), |sql| call.env.text(&sql))
}

/// `checkSql(name, table, quick)`: the query that looks for damage in a database of this name, or in one of its tables.
pub(crate) fn check_sql<'e>(call: &Call<'e, Host>) -> Answer<'e> {
    let (env, name) = (call.env, call.text::<0>()?);
    let table = match env.kind(call.argument::<1>()) {
        Kind::String => Some(call.text::<1>()?),
        _ => None,
    };
    env.text(&bindings::check_sql(&name, table.as_deref(), env.as_bool(call.argument::<2>())?))
}

/// `problems(row)`: those that a row of its result has.
pub(crate) fn problems<'e>(call: &Call<'e, Host>) -> Answer<'e> {
    let row = call.text::<0>()?;
    let all: Vec<_> = bindings::problems(&row).collect();
    call.env.array(all.iter().map(|problem| call.env.text(problem)))
}
