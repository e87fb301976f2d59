//! The counters of a database, the events of its calls, and what concerns the process.
//!
//! Owns: their values as JavaScript's, with names in camelCase and times in milliseconds. Runs on the caller's thread. Leaves out: their
//! names (`flatwater-bridge`), and what is counted.

use flatwater::{bindings, process};
use flatwater_bridge::{Counter, camel, counters};

use crate::calls::gone;
use crate::capi::function::Call;
use crate::capi::value::{Env, Result, Value};
use crate::handles::Handle;
use crate::host::Host;

/// `stats(database)`
pub(crate) fn stats<'e>(call: &Call<'e, Host>) -> Result<Value<'e>> {
    let stats = match call.host.handles.get(call.number::<0>()?).as_deref() {
        Some(Handle::Database { database, .. }) => match database.file("`stats`") {
            Ok(database) => database.stats(),
            Err(failure) => return call.host.failed(call.env, failure),
        },
        _ => return call.host.failed(call.env, gone()),
    };
    object(call.env, counters(&stats))
}

fn object<'e>(env: Env<'e>, all: Vec<(&str, Counter<'_>)>) -> Result<Value<'e>> {
    let object = env.object()?;
    for (name, counter) in all {
        let value = match counter {
            Counter::Number(number) => env.number(number as f64)?,
            Counter::Truth(is_so) => env.boolean(is_so)?,
            Counter::Text(text) => env.text(text)?,
            Counter::Time(time) => env.number(time.as_secs_f64() * 1_000.0)?,
            Counter::Nothing => env.null()?,
            Counter::Group(group) => self::object(env, group)?,
        };
        env.set(object, &camel(name), value)?;
    }
    Ok(object)
}

/// `name(database)`: the address of a server without its secrets; undefined for a database of this process.
pub(crate) fn name<'e>(call: &Call<'e, Host>) -> Result<Value<'e>> {
    let handle = call.host.handles.get(call.number::<0>()?);
    let Some(Handle::Database { database, .. }) = handle.as_deref() else { return call.env.undefined() };
    match database.address() {
        Some(address) => call.env.text(address),
        None => call.env.undefined(),
    }
}

/// `listen(target, on)`: whether the calls on this database have events.
pub(crate) fn listen<'e>(call: &Call<'e, Host>) -> Result<Value<'e>> {
    let (env, host) = (call.env, call.host);
    let is_on = env.as_bool(call.argument::<1>())?;
    if let Some(target) = host.handles.get(call.number::<0>()?).as_deref().and_then(Handle::target) {
        bindings::listen(target, is_on.then(|| host.events.hear()));
    }
    env.undefined()
}

/// `event()`: the event of the last poll, if a call ended in it.
pub(crate) fn event<'e>(call: &Call<'e, Host>) -> Result<Value<'e>> {
    call.host.events.take().map_or_else(|| call.env.undefined(), |event| event.object(call.env))
}

/// `allocated()`: the bytes that this module has allocated, in a build for tests.
pub(crate) fn allocated<'e>(call: &Call<'e, Host>) -> Result<Value<'e>> {
    #[cfg(debug_assertions)]
    return call.env.number(crate::capi::counted::live_bytes() as f64);
    #[cfg(not(debug_assertions))]
    call.env.undefined()
}

/// `setMaxOpen(databases)`
pub(crate) fn set_max_open<'e>(call: &Call<'e, Host>) -> Result<Value<'e>> {
    process::set_max_open(call.number::<0>()? as usize);
    call.env.undefined()
}
