//! What a program defines, as SQLite is told of it.
//!
//! Owns: reading definitions that JavaScript has checked. Invariant: none has code, which JavaScript keeps. Leaves out: calling it.

use std::sync::Arc;

use crate::capi::value::{Env, Result, Value};

/// One function or collation, as SQLite is told of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Definition {
    pub(crate) kind: Kind,
    pub(crate) name: Box<str>,
    /// -1 for any number.
    pub(crate) arguments: i32,
    pub(crate) is_deterministic: bool,
    pub(crate) is_direct_only: bool,
    /// As the option `integers` has it.
    pub(crate) integers: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Function = 0,
    Aggregate = 1,
    Window = 2,
    Collation = 3,
}

impl Definition {
    /// As an error names it.
    pub(crate) fn said(&self) -> String {
        let kind = if self.kind == Kind::Collation { "collation" } else { "function" };
        format!("the {kind} {}", self.name)
    }
}

/// Reads an array of definitions.
pub(crate) fn definitions<'e>(env: Env<'e>, list: Value<'e>) -> Result<Vec<Arc<Definition>>> {
    let definition = |at| {
        let one = env.element(list, at)?;
        let number = |at| env.as_f64(env.element(one, at)?);
        Ok(Arc::new(Definition {
            name: env.with_text(env.element(one, 0)?, |name| Box::from(name))?,
            kind: match number(1)? as u32 {
                0 => Kind::Function,
                1 => Kind::Aggregate,
                2 => Kind::Window,
                _ => Kind::Collation,
            },
            arguments: number(2)? as i32,
            is_deterministic: env.as_bool(env.element(one, 3)?)?,
            is_direct_only: env.as_bool(env.element(one, 4)?)?,
            integers: number(5)? as u32,
        }))
    };
    (0..env.array_length(list).unwrap_or(0)).map(definition).collect()
}
