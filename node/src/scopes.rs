//! The functions of the module for what a program has open beside a database: the ends of transactions, their savepoints, and
//! connections of its own.
//!
//! Owns: the arguments of each. Runs on the loop's thread, and never waits there. Leaves out: what runs in them (`calls`), and their
//! beginning, which is a call as others are.

use std::time::Duration;

use flatwater::bindings::functions::set_callbacks;
use flatwater::bindings::{FrontCall, Target};
use flatwater::{ConnectionOptions, Transaction};

use crate::calls::{gone, set_place, timed};
use crate::capi::function::Call;
use crate::capi::value::{Kind, Result, Value};
use crate::handles::Handle;
use crate::host::Host;
use crate::told::Told;

type Answer<'e> = Result<Value<'e>>;

/// `end(transaction, commits, timeout)`: commits or rolls back.
pub(crate) fn end<'e>(call: &Call<'e, Host>) -> Answer<'e> {
    let (env, host) = (call.env, call.host);
    let commits = env.as_bool(call.argument::<1>())?;
    match host.handles.take(call.number::<0>()?) {
        Some(Handle::Transaction { transaction, target, .. }) => {
            drop(target);
            let end: FrontCall = if commits { transaction.commit().into() } else { transaction.rollback().into() };
            host.call(env, timed(end, call.number::<2>()?))
        }
        _ => host.failed(env, gone()),
    }
}

/// `inTransaction(handle)`
pub(crate) fn in_transaction<'e>(call: &Call<'e, Host>) -> Answer<'e> {
    let number = call.number::<0>()?;
    let is_open = call.host.handles.get(number).is_some_and(|of| of.target().is_some_and(Target::in_transaction));
    call.env.boolean(is_open)
}

/// `savepoint(transaction, step, name, timeout, place)`: opens one (0), closes it and keeps its changes (1), or undoes them (2).
pub(crate) fn savepoint<'e>(call: &Call<'e, Host>) -> Answer<'e> {
    let (env, host) = (call.env, call.host);
    let (number, name) = (call.number::<0>()?, call.text::<2>()?);
    let step = match call.number::<1>()? as u32 {
        0 => Transaction::savepoint,
        1 => Transaction::release,
        _ => Transaction::rollback_to,
    };
    let stepped = match host.handles.get(number).as_deref() {
        Some(Handle::Transaction { transaction, .. }) => FrontCall::from(step(transaction, &name)),
        _ => return host.failed(env, gone()),
    };
    let mut stepped = timed(stepped, call.number::<3>()?);
    set_place(host, stepped.unbegun(), call.number::<4>()?);
    host.call(env, stepped)
}

/// `connection(database, busyTimeout, foreignKeys, place)`: a connection of its own. A negative time, and keys that are no boolean, are
/// those of the database.
pub(crate) fn connection<'e>(call: &Call<'e, Host>) -> Answer<'e> {
    let (env, host) = (call.env, call.host);
    let mut options = ConnectionOptions::new();
    if let Ok(timeout) = Duration::try_from_secs_f64(call.number::<1>()? / 1_000.0) {
        options = options.busy_timeout(timeout);
    }
    if env.kind(call.argument::<2>()) == Kind::Boolean {
        options = options.foreign_keys(env.as_bool(call.argument::<2>())?);
    }
    let around = call.number::<3>()?;
    let connection = match host.handles.get(call.number::<0>()?).as_deref() {
        Some(Handle::Database { database, .. }) => match database.file("a connection of one's own") {
            Ok(database) => options.connect(database),
            Err(failure) => return host.failed(env, failure),
        },
        _ => return host.failed(env, gone()),
    };
    let target = Target::of(&connection);
    env.number(host.handles.add(Handle::Connection { connection, target, around, told: Told::default() }))
}

/// `closeConnection(connection)`: when its earlier statements are done.
pub(crate) fn close_connection<'e>(call: &Call<'e, Host>) -> Answer<'e> {
    let (env, host) = (call.env, call.host);
    match host.handles.take(call.number::<0>()?) {
        Some(Handle::Connection { connection, .. }) => host.call(env, connection.close().into()),
        _ => host.done(env),
    }
}

/// `interrupt(connection)`: the statement that runs now.
pub(crate) fn interrupt<'e>(call: &Call<'e, Host>) -> Answer<'e> {
    if let Some(Handle::Connection { connection, .. }) = call.host.handles.get(call.number::<0>()?).as_deref() {
        connection.interrupt();
    }
    call.host.done(call.env)
}

/// `totalChanges(connection)`
pub(crate) fn total_changes<'e>(call: &Call<'e, Host>) -> Answer<'e> {
    let total = match call.host.handles.get(call.number::<0>()?).as_deref() {
        Some(Handle::Connection { connection, .. }) => connection.total_changes(),
        _ => 0,
    };
    call.env.number(total as f64)
}

/// `tell(connection, events)`: which events are noted from the next statement on, as bits.
pub(crate) fn tell<'e>(call: &Call<'e, Host>) -> Answer<'e> {
    let events = call.number::<1>()? as u32;
    match call.host.handles.get(call.number::<0>()?).as_deref() {
        Some(Handle::Connection { connection, told, .. }) => {
            set_callbacks(connection, |callbacks| told.listen(events, callbacks));
        }
        _ => return call.host.failed(call.env, gone()),
    }
    call.host.done(call.env)
}

/// `told(connection)`: the events since the last call, each an array of its name and what it says.
pub(crate) fn told<'e>(call: &Call<'e, Host>) -> Answer<'e> {
    let env = call.env;
    let events = match call.host.handles.get(call.number::<0>()?).as_deref() {
        Some(Handle::Connection { told, .. }) => told.take(),
        _ => Vec::new(),
    };
    env.array(events.iter().map(|event| event.array(env)))
}

/// `limit(connection, limit, value)`: sets a limit of SQLite from the next statement on.
pub(crate) fn limit<'e>(call: &Call<'e, Host>) -> Answer<'e> {
    let (limit, value) = (call.number::<1>()? as i32, call.number::<2>()? as i32);
    if let Some(Handle::Connection { connection, .. }) = call.host.handles.get(call.number::<0>()?).as_deref() {
        set_callbacks(connection, |callbacks| {
            callbacks.limits.retain(|(other, _)| *other != limit);
            callbacks.limits.push((limit, value));
        });
    }
    call.host.done(call.env)
}
