//! The functions of the module that open databases and let go of what is open.
//!
//! Owns: the arguments of each. Runs on the loop's thread, and never waits there. Invariant: what an `open` that fails was given is let go.
//! Leaves out: the options (`options`), and what becomes of a call (`host`).

use std::time::Duration;

use flatwater::ErrorCode;
use flatwater::bindings::functions::Function;
use flatwater::bindings::{self, Target};
use flatwater_bridge::Opened;
use flatwater_remote::is_address;

use crate::calls::is_inside;
use crate::capi::function::Call;
use crate::capi::value::{Result, Value};
use crate::failure::Failure;
use crate::functions::{called, serve};
use crate::handles::Handle;
use crate::host::Host;
use crate::options;

type Answer<'e> = Result<Value<'e>>;

/// `open(path, options, functions, onLoop, first, woken, joins)`: `functions` is a module's, `onLoop` the definitions of those on this
/// thread's loop, of which JavaScript has the code of the first under the number `first`. `joins`: if this process has the file open, the
/// options are those of the first.
pub(crate) fn open<'e>(call: &Call<'e, Host>) -> Answer<'e> {
    let (env, host) = (call.env, call.host);
    let path = call.text::<0>()?;
    // Made first: the code of those that no database has is let go.
    let functions = functions_of(call)?;
    if is_address(&path) {
        // The caller asks it something, so that what is wrong with it is told.
        return match options::of_server(env, &path, call.argument::<1>()) {
            Ok(remote) => {
                let target = Target::of(&remote);
                let id = target.database() as f64;
                let number = host.handles.add(Handle::Database { database: Opened::Server(remote), target });
                host.numbers(env, &[number, id])
            }
            Err(failure) => host.failed(env, failure),
        };
    }
    let joins = env.as_bool(call.argument::<6>()).unwrap_or(false);
    let joined = |options| if joins { bindings::joining(options) } else { options };
    match options::of(env, &path, call.argument::<1>()).map(joined) {
        Ok(options) => match functions {
            Ok(functions) => host.call(env, bindings::open_with(options, functions)),
            Err(error) => host.failed(env, error),
        },
        Err(failure) => host.failed(env, failure),
    }
}

fn functions_of<'e>(call: &Call<'e, Host>) -> Result<flatwater::Result<Vec<Function>>> {
    let (env, host) = (call.env, call.host);
    let of_module = match call.number::<2>().ok().and_then(|number| host.handles.get(number)).as_deref() {
        Some(Handle::Functions(module)) => called::functions(module),
        _ => Ok(Vec::new()),
    };
    if env.array_length(call.argument::<3>()).is_none() {
        return Ok(of_module);
    }
    let first = call.number::<4>()? as usize;
    let on_loop = serve::functions_on_loop(env, host, (call.argument::<3>(), first, call.argument::<5>()))?;
    Ok(of_module.and_then(|of_module| Ok([of_module, on_loop?].into_iter().flatten().collect())))
}

/// `close(database, place)`
pub(crate) fn close<'e>(call: &Call<'e, Host>) -> Answer<'e> {
    let (env, host) = (call.env, call.host);
    let (closing, database) = match host.handles.get(call.number::<0>()?).as_deref() {
        Some(Handle::Database { database, target }) => (bindings::close(database.session()), target.database()),
        _ => return host.done(env),
    };
    if is_inside(host, database, call.number::<1>()?, false) {
        let message = "close would wait for the end of the transaction whose function calls it";
        return host.failed(
            env,
            Failure::refused(ErrorCode::CallsItself, message, Some("close the database after the transaction")),
        );
    }
    host.call(env, closing)
}

/// `closeAll(wait)`: the databases of the process, whose transactions are waited for so many milliseconds.
pub(crate) fn close_all<'e>(call: &Call<'e, Host>) -> Answer<'e> {
    let wait = Duration::try_from_secs_f64(call.number::<0>()? / 1_000.0).unwrap_or(Duration::MAX);
    call.host.call(call.env, flatwater::process::close_all(wait).into())
}

/// `release(handle)`: lets it go, which rolls a transaction back and leaves a live query.
pub(crate) fn release<'e>(call: &Call<'e, Host>) -> Answer<'e> {
    let gone = call.host.handles.take(call.number::<0>()?);
    if let Some(spot) = gone.as_ref().and_then(Handle::spot) {
        call.host.leave(spot);
    }
    drop(gone);
    call.host.done(call.env)
}
