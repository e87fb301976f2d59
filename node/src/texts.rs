//! The functions of the module that read SQL: by the tokens of the engine, never by a pattern.
//!
//! Owns: what JavaScript is told of a text. Runs on the loop's thread; pure. Leaves out: what follows from it.

use flatwater::bindings;

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
