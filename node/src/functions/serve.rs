//! The side of Node: calling the functions of a module that a worker has loaded, or of the program, on its loop.
//!
//! Owns: the values of a call in JavaScript and its result. Runs on the thread of the functions. Invariants: a function that throws is the
//! answer of its request; the event loop has its turn after some milliseconds. Leaves out: what a method does, and when the loop goes on,
//! which is JavaScript's (`flatwater/functions`).

use std::sync::Arc;
use std::time::{Duration, Instant};

use flatwater::ErrorCode;
use flatwater::bindings::functions::Function;
use flatwater::rusqlite::types::Value as SqlValue;

use super::called;
use super::definition::{Definition, definitions};
use super::modules::Module;
use super::request::{Answer, Failed, Request};
use super::serves::Serves;
use super::threw::Threw;
use super::worker::Worker;
use crate::capi::function::Call;
use crate::capi::value::{Env, Result, Value};
use crate::failure::Failure;
use crate::handles::Handle;
use crate::host::Host;
use crate::params::{self, is_safe};

/// So long a worker serves before its loop has a turn.
const TURN: Duration = Duration::from_millis(5);
/// The same of the program's loop, which has other things to do.
const TURN_ON_LOOP: Duration = Duration::from_millis(1);

/// `functionsOf(url, unused)`: the number that keeps the module of functions until a database does, the module's, and how many workers
/// it has. `unused` is called when none uses one of the environment's modules any more.
pub(crate) fn functions_of<'e>(call: &Call<'e, Host>) -> Result<Value<'e>> {
    let (module, unused) = (Module::of(&call.text::<0>()?), &call.host.unused);
    if !unused.is_begun() {
        unused.begin(call.env, call.argument::<1>())?;
    }
    module.tell(unused);
    let (number, workers) = (module.number as f64, module.workers() as f64);
    call.host.numbers(call.env, &[call.host.handles.add(Handle::Functions(module)), number, workers])
}

/// `usedModule(url)`: the number of the module, if a database of the process uses it; -1 if none does.
pub(crate) fn used_module<'e>(call: &Call<'e, Host>) -> Result<Value<'e>> {
    let module = Module::used(&call.text::<0>()?);
    call.env.number(module.map_or(-1.0, |module| module.number as f64))
}

/// `serveFunctions(url, definitions, woken)`: this environment serves the module from now on. Each definition is `[name, kind,
/// arguments, deterministic, directOnly, integers]`. Done, or failed if nobody uses the module any more.
pub(crate) fn serve_functions<'e>(call: &Call<'e, Host>) -> Result<Value<'e>> {
    let (env, host, url) = (call.env, call.host, call.text::<0>()?);
    let worker = Arc::new(Worker::new(definitions(env, call.argument::<1>())?));
    let Some(module) = Module::used(&url) else {
        return host
            .failed(env, Failure::refused(ErrorCode::Finished, "no database uses the functions any more", None));
    };
    worker.wake.begin(env, call.argument::<2>())?;
    worker.wake.keep_alive(env, true);
    *host.serves.worker.borrow_mut() = Some((worker.clone(), url));
    module.add(worker);
    host.done(env)
}

/// The functions in the array `list`, on the loop of this thread: JavaScript has the code of the first under the number `first`. `woken` is
/// called when something is asked.
pub(crate) fn functions_on_loop<'e>(
    env: Env<'e>,
    host: &Host,
    (list, first, woken): (Value<'e>, usize, Value<'e>),
) -> Result<flatwater::Result<Vec<Function>>> {
    let worker = &host.serves.on_loop;
    if !worker.wake.is_begun() {
        worker.wake.begin(env, woken)?;
    }
    Ok(called::functions_on_loop(worker, first, definitions(env, list)?))
}

/// `threw(said, thrown)`: the function that runs has failed.
pub(crate) fn threw<'e>(call: &Call<'e, Host>) -> Result<Value<'e>> {
    let thrown = call.env.with_bytes(call.argument::<1>(), |bytes| Box::from(bytes));
    *call.host.serves.threw.borrow_mut() = Some((call.text::<0>()?, thrown));
    call.env.undefined()
}

/// `serve(call, isOnLoop)`: answers what was asked of the module of this environment, or of its loop. True if there is more, and the
/// loop is to have a turn before it goes on.
pub(crate) fn serve<'e>(call: &Call<'e, Host>) -> Result<Value<'e>> {
    let (env, serves) = (call.env, &call.host.serves);
    let (worker, turn) = if env.as_bool(call.argument::<1>())? {
        (serves.on_loop.clone(), TURN_ON_LOOP)
    } else {
        let Some((worker, _)) = serves.worker.borrow().clone() else { return env.boolean(false) };
        (worker, TURN)
    };
    let began = Instant::now();
    while let Some(request) = worker.next() {
        let answer = env.scoped(|| answer(env, serves, call.argument::<0>(), &request));
        match answer {
            Ok(answer) => request.answer(answer),
            Err(Ending) => {
                serves.end();
                break;
            }
        }
        if began.elapsed() > turn {
            worker.pause();
            return env.boolean(true);
        }
    }
    env.boolean(false)
}

/// Nothing can be called any more, because the thread ends.
struct Ending;

fn answer<'e>(env: Env<'e>, serves: &Serves, function: Value<'e>, request: &Request) -> Result<Answer, Ending> {
    let definition = &*request.definition;
    let failed = |said: String, thrown| Failed::Threw(Threw::new(said, thrown));
    let mut arguments = &*request.arguments;
    let mut last = SqlValue::Null;
    for (method, count) in &request.calls {
        let (own, others) = arguments.split_at(*count);
        arguments = others;
        let head = [f64::from(*method as u8), request.at as f64, request.instance as f64];
        let mut values: Vec<_> = head.into_iter().map(|number| env.number(number)).collect();
        for (index, value) in own.iter().enumerate() {
            let Some(value) = made(env, value, definition.integers) else {
                return Ok(Err(failed(inexact(definition, index), None)));
            };
            values.push(value);
        }
        let Ok(values) = values.into_iter().collect::<Result<Vec<_>>>() else {
            let said = format!("{} was not called: an argument is longer than Node can hold", definition.said());
            return Ok(Err(failed(said, None)));
        };
        let called = env.call(function, &values);
        if let Some((said, thrown)) = serves.threw.take() {
            return Ok(Err(failed(format!("{} {said}", definition.said()), thrown)));
        }
        last = match params::result(env, called.map_err(|_| Ending)?) {
            Ok(value) => value,
            Err(refused) => {
                return Ok(Err(failed(format!("the result of {}: {refused}", definition.said()), None)));
            }
        };
    }
    Ok(Ok(last))
}

#[cold]
fn inexact(definition: &Definition, argument: usize) -> String {
    let hint = "say { integers: \"auto\" } or \"bigint\" for the function";
    format!("{} was not called: its argument {} is beyond 2^53 -- {hint}", definition.said(), argument + 1)
}

/// Makes an argument. `None` for an integer that is not exact as a number.
fn made<'e>(env: Env<'e>, value: &SqlValue, integers: u32) -> Option<Result<Value<'e>>> {
    Some(match value {
        SqlValue::Null => env.null(),
        SqlValue::Integer(value) if integers == 2 || integers == 1 && !is_safe(*value) => env.big(*value),
        SqlValue::Integer(value) if is_safe(*value) => env.number(*value as f64),
        SqlValue::Integer(_) => return None,
        SqlValue::Real(value) => env.number(*value),
        SqlValue::Text(text) => env.text(text),
        SqlValue::Blob(bytes) => env.buffer(bytes),
    })
}
