//! The functions of the module for large values that are read and written in parts.
//!
//! Owns: the arguments of each. Runs on the loop's thread. Leaves out: where the position is, which JavaScript keeps.

use flatwater::bindings::FrontCall;

use crate::calls::{gone, set_place, timed};
use crate::capi::function::Call;
use crate::capi::value::{Result, Value};
use crate::failure::Failure;
use crate::handles::Handle;
use crate::host::Host;

/// `openBlob(target, table, column, rowid, timeout, place)`: the number and the length of the value.
pub(crate) fn open<'e>(call: &Call<'e, Host>) -> Result<Value<'e>> {
    let (env, host) = (call.env, call.host);
    let (number, table, column) = (call.number::<0>()?, call.text::<1>()?, call.text::<2>()?);
    let Ok(Some(rowid)) = env.as_i64(call.argument::<3>()) else {
        return host.failed(env, Failure::misuse("the rowid must be an integer of 64 bits", None));
    };
    let handle = host.handles.get(number);
    let opening = handle.as_deref().and_then(Handle::target).map(|on| on.open_blob(("main", &table), &column, rowid));
    drop(handle);
    let Some(opening) = opening else { return host.failed(env, gone()) };
    let mut opening = timed(opening, call.number::<4>()?);
    set_place(host, opening.unbegun(), call.number::<5>()?);
    host.call(env, opening)
}

/// `readBlob(blob, position, bytes, timeout, place)`: a buffer.
pub(crate) fn read<'e>(call: &Call<'e, Host>) -> Result<Value<'e>> {
    let (env, host) = (call.env, call.host);
    let (position, bytes) = (call.number::<1>()? as usize, call.number::<2>()? as usize);
    let reading = match host.handles.get(call.number::<0>()?).as_deref() {
        Some(Handle::Blob(blob)) => FrontCall::from(blob.read_at(position, bytes)),
        _ => return host.failed(env, gone()),
    };
    let mut reading = timed(reading, call.number::<3>()?);
    set_place(host, reading.unbegun(), call.number::<4>()?);
    host.call(env, reading)
}

/// `writeBlob(blob, position, bytes, timeout, place)`
pub(crate) fn write<'e>(call: &Call<'e, Host>) -> Result<Value<'e>> {
    let (env, host) = (call.env, call.host);
    let position = call.number::<1>()? as usize;
    let Some(bytes) = env.with_bytes(call.argument::<2>(), <[u8]>::to_vec) else {
        return host.failed(env, Failure::misuse("what is written must be a Uint8Array or an ArrayBuffer", None));
    };
    let writing = match host.handles.get(call.number::<0>()?).as_deref() {
        Some(Handle::Blob(blob)) => FrontCall::from(blob.write_at(position, bytes)),
        _ => return host.failed(env, gone()),
    };
    let mut writing = timed(writing, call.number::<3>()?);
    set_place(host, writing.unbegun(), call.number::<4>()?);
    host.call(env, writing)
}
