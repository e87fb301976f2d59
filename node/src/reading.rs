//! The functions of the module with which JavaScript reads answers and goes on with calls.
//!
//! Owns: the arguments of each. Runs on the loop's thread. Leaves out: what an answer looks like (`answers`).

use std::sync::Arc;

use flatwater::ErrorCode;
use flatwater::bindings::loop_had_turn;
use flatwater_bridge::{Types, unknown};

use crate::capi::function::Call;
use crate::capi::value::{Result, Value};
use crate::failure::Failure;
use crate::handles::Handle;
use crate::host::Host;
use crate::schemas::Meanings;

type Answer<'e> = Result<Value<'e>>;

/// `begin(cells, woken)`: the array for numbers, and what is called when tokens were noted.
pub(crate) fn begin<'e>(call: &Call<'e, Host>) -> Answer<'e> {
    call.host.cells.set(call.env, call.argument::<0>())?;
    call.host.wake.begin(call.env, call.argument::<1>())?;
    call.env.undefined()
}

/// `drain(most)`: the number of tokens in the cells.
pub(crate) fn drain<'e>(call: &Call<'e, Host>) -> Answer<'e> {
    call.host.drain(call.env, call.number::<0>()?)
}

/// `poll(token)`: goes on with a call.
pub(crate) fn poll<'e>(call: &Call<'e, Host>) -> Answer<'e> {
    call.host.poll(call.env, call.number::<0>()?)
}

/// `giveUp(token)`: true if the outcome of the call is to be waited for.
pub(crate) fn give_up<'e>(call: &Call<'e, Host>) -> Answer<'e> {
    call.env.boolean(call.host.give_up(call.number::<0>()?))
}

/// `hadTurn()`: timers and I/O of the loop were served.
pub(crate) fn had_turn<'e>(call: &Call<'e, Host>) -> Answer<'e> {
    loop_had_turn();
    call.env.undefined()
}

/// `keepAlive(on)`: whether the process lives on for this module.
pub(crate) fn keep_alive<'e>(call: &Call<'e, Host>) -> Answer<'e> {
    call.host.wake.keep_alive(call.env, call.env.as_bool(call.argument::<0>())?);
    call.env.undefined()
}

/// `ended()`: the process ends, or this thread of it.
pub(crate) fn ended<'e>(call: &Call<'e, Host>) -> Answer<'e> {
    call.host.end();
    call.env.undefined()
}

/// `failure()`: the fields of the error of the last call that failed.
pub(crate) fn failure<'e>(call: &Call<'e, Host>) -> Answer<'e> {
    let failure = call.host.failure.borrow_mut().take();
    failure.map_or_else(|| call.env.undefined(), |failure| failure.fields(call.env))
}

/// `columns(schema)`: the names of the columns of the last chunk, whose schema this is.
pub(crate) fn columns<'e>(call: &Call<'e, Host>) -> Answer<'e> {
    let number = call.number::<0>()?;
    let names = call.host.schemas.borrow().names_of(number);
    call.env.array(names.iter().map(|name| call.env.text(name)))
}

/// `declaredTypes(schema)`: the types of these columns, as they are written in the definitions of tables; empty for an expression.
pub(crate) fn declared_types<'e>(call: &Call<'e, Host>) -> Answer<'e> {
    let number = call.number::<0>()?;
    let types = call.host.schemas.borrow().declared_types_of(number);
    call.env.array(types.iter().map(|declared| call.env.text(declared)))
}

/// `tables(schema)`: the tables of these columns; empty for an expression.
pub(crate) fn tables<'e>(call: &Call<'e, Host>) -> Answer<'e> {
    let number = call.number::<0>()?;
    let tables = call.host.schemas.borrow().tables_of(number);
    call.env.array(tables.iter().map(|table| call.env.text(table)))
}

/// `bytes()`: the blobs of the last chunk, one after the other.
pub(crate) fn bytes<'e>(call: &Call<'e, Host>) -> Answer<'e> {
    call.env.buffer(call.host.flat.borrow().bytes())
}

/// `unknown(what, name, known)`: the sentence for a name that is none of those.
pub(crate) fn unknown_name<'e>(call: &Call<'e, Host>) -> Answer<'e> {
    let (what, name, known) = (call.text::<0>()?, call.text::<1>()?, call.env.texts(call.argument::<2>())?);
    call.env.text(&unknown(&what, &name, known.iter().map(String::as_str)))
}

/// `types(pairs, around)`: what columns mean that are named, each with a word, before those of `around`; the declared types of others
/// count. The number of it.
pub(crate) fn types<'e>(call: &Call<'e, Host>) -> Answer<'e> {
    let (env, host) = (call.env, call.host);
    let mut asked = Types::default();
    for pair in env.texts(call.argument::<0>())?.chunks_exact(2) {
        if let Err(wrong) = asked.name(&pair[0], &pair[1]) {
            return host.failed(env, Failure::refused(ErrorCode::InvalidOption, wrong, None));
        }
    }
    let around = match host.handles.get(call.number::<1>()?).as_deref() {
        Some(Handle::Types(around)) => Some(Arc::clone(around)),
        _ => None,
    };
    let is_of_call = env.as_bool(call.argument::<2>())?;
    let types = around.map_or_else(|| asked.clone(), |around| asked.clone().or(&around.types));
    let meanings = Meanings { types, asked: is_of_call.then_some(asked) };
    env.number(host.handles.add(Handle::Types(Arc::new(meanings))))
}
