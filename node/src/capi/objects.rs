//! What objects of the program say of themselves.
//!
//! Owns: their classes, and calls of their own code. Runs on the loop's thread. Invariant: nothing is borrowed meanwhile, because the code
//! may do anything. Leaves out: which of them are bound, and how (`params`).

use std::ptr;

use napi_sys as sys;

use super::value::{Env, Kind, Result, Thrown, Value, made};

impl<'e> Env<'e> {
    /// True for an object that has no class, whichever realm it is from.
    pub(crate) fn is_plain(self, value: Value<'e>) -> bool {
        let above = |value: Value<'e>| self.value(made!(self, napi_get_prototype(value.raw) -> ptr::null_mut()));
        let is_last = |value: Value<'e>| self.kind(value) == Kind::Null;
        above(value).is_ok_and(|class| is_last(class) || above(class).is_ok_and(is_last))
    }

    pub(crate) fn is_promise(self, value: Value<'e>) -> bool {
        made!(self, napi_is_promise(value.raw) -> false).unwrap_or(false)
    }

    /// The value as JSON; undefined if it has none. It runs code of JavaScript, which may throw.
    pub(crate) fn json(self, value: Value<'e>) -> Result<Value<'e>> {
        let global = self.value(made!(self, napi_get_global() -> ptr::null_mut()))?;
        let json = self.property(global, "JSON")?;
        let stringify = self.property(json, "stringify")?;
        self.method(json, stringify, &[value])
    }

    /// The digits of a number of a library for decimals, such as decimal.js, big.js and bignumber.js: what `toFixed()` returns. `None` for
    /// another object. It runs code of JavaScript, which may throw.
    pub(crate) fn decimal(self, value: Value<'e>) -> Result<Option<Value<'e>>> {
        let of = |name| {
            self.property(value, name).map(|method| Some(method).filter(|_| self.kind(method) == Kind::Function))
        };
        let (Some(digits), Some(primitive)) = (of("toFixed")?, of("valueOf")?) else { return Ok(None) };
        // A `Number` has it too, and rounds.
        if self.kind(self.method(value, primitive, &[])?) == Kind::Number {
            return Ok(None);
        }
        self.method(value, digits, &[]).map(Some)
    }

    fn method(self, this: Value<'e>, method: Value<'e>, arguments: &[Value<'e>]) -> Result<Value<'e>> {
        let (count, arguments) = (arguments.len(), arguments.as_ptr().cast::<sys::napi_value>());
        self.value(made!(self, napi_call_function(this.raw, method.raw, count, arguments) -> ptr::null_mut()))
    }
}
