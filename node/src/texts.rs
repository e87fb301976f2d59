//! The functions of the module that read SQL: by the tokens of the engine, never by a pattern.
//!
//! Owns: what JavaScript is told of a text. Runs on the loop's thread; pure. Leaves out: what follows from it.

use flatwater::rusqlite::ffi;
use flatwater::{bindings, rusqlite};

use crate::capi::function::Call;
use crate::capi::value::{Result, Value};
use crate::host::Host;

type Answer<'e> = Result<Value<'e>>;

/// `hasRows(sql)`: a guess whether the statement returns rows.
pub(crate) fn has_rows<'e>(call: &Call<'e, Host>) -> Answer<'e> {
    let sql = call.env.with_text(call.argument::<0>(), bindings::looks_like_rows);
    call.env.boolean(sql.unwrap_or(false))
}

/// `statements(script)`: for each `[text, verb, pragma, value]`. `verb` is in upper case, `pragma` in lower case and empty if it is
/// none, `value` is `on` or `off` for one that is set.
pub(crate) fn statements<'e>(call: &Call<'e, Host>) -> Answer<'e> {
    let (env, script) = (call.env, call.text::<0>()?);
    let all: Vec<_> = bindings::statements(&script).collect();
    env.array(all.into_iter().map(|(text, verb, pragma)| {
        let (name, is_on) = pragma.unwrap_or_default();
        let value = is_on.map_or("", |is_on| if is_on { "on" } else { "off" });
        let parts = [
            env.text(text),
            env.text(&verb.to_ascii_uppercase()),
            env.text(&name.to_ascii_lowercase()),
            env.text(value),
        ];
        env.array(parts.into_iter())
    }))
}

/// `described(sql)`: the first statement of a text, the word that says what it does, in upper case, and the names of its parameters by
/// position, with their signs. Empty if there is none.
pub(crate) fn described<'e>(call: &Call<'e, Host>) -> Answer<'e> {
    let (env, sql) = (call.env, call.text::<0>()?);
    let Some((text, verb, _)) = bindings::statements(&sql).next() else { return env.array(std::iter::empty()) };
    let names = bindings::parameters_by_position(text);
    let all = [text.to_owned(), verb.to_ascii_uppercase()].into_iter().chain(names);
    env.array(all.collect::<Vec<_>>().iter().map(|text| env.text(text)))
}

/// `sqliteVersion()`: the version, the identifier of its sources, its number.
pub(crate) fn sqlite_version<'e>(call: &Call<'e, Host>) -> Answer<'e> {
    let env = call.env;
    let source = ffi::SQLITE_SOURCE_ID.to_string_lossy();
    let number = env.number(f64::from(rusqlite::version_number()));
    env.array([env.text(rusqlite::version()), env.text(&source), number].into_iter())
}
