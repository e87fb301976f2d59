//! How the values of results become JavaScript's: what integers become, and what columns mean.
//!
//! Owns: taking both as JavaScript gives them. Runs on the loop's thread. Invariant: what a call was given holds for all of its result.
//! Leaves out: what types mean, and reading a value (`flatwater-bridge`).

use std::sync::Arc;

use flatwater::{ErrorCode, Rows};
use flatwater_bridge::{Integers, Meaning, Types};

use crate::capi::function::Call;
use crate::capi::value::{Result, Value};
use crate::failure::Failure;
use crate::handles::Handle;
use crate::host::Host;
use crate::schemas::Schemas;

/// What columns mean: of a call before what the database says.
pub(crate) struct Meanings {
    types: Types,
    /// Those that the call named, each of which a column must have.
    asked: Option<Types>,
}

impl Meanings {
    fn of(&self, rows: &Rows) -> Vec<Option<Meaning>> {
        let meaning = |at| rows.column(at).ok().and_then(|column| self.types.of(column));
        let all: Vec<_> = (0..rows.columns().len()).map(meaning).collect();
        if all.iter().any(Option::is_some) { all } else { Vec::new() }
    }
}

/// How a result is read.
#[derive(Clone, Default)]
pub(crate) struct ReadAs {
    pub(crate) integers: Integers,
    types: Option<Arc<Meanings>>,
    /// How many rows of the result were before these.
    pub(crate) before: usize,
}

impl ReadAs {
    /// `types` is the number of what `types()` made; negative for values as they are stored.
    pub(crate) fn new(host: &Host, integers: f64, types: f64) -> Self {
        let integers = match integers as i32 {
            1 => Integers::Auto,
            2 => Integers::Big,
            _ => Integers::Exact,
        };
        let types = match host.handles.get(types).as_deref() {
            Some(Handle::Types(types)) => Some(Arc::clone(types)),
            _ => None,
        };
        Self { integers, types, before: 0 }
    }

    /// True if columns have meanings: then arrays and objects are bound as JSON.
    pub(crate) fn has_types(&self) -> bool {
        self.types.is_some()
    }

    /// What the columns of the rows mean; nothing if none has a meaning.
    pub(crate) fn meanings(&self, schemas: &mut Schemas, rows: &Rows) -> Result<Arc<[Option<Meaning>]>, Failure> {
        let Some(types) = &self.types else { return Ok(Arc::default()) };
        if let Some(name) = types.asked.as_ref().and_then(|asked| asked.unused(rows)) {
            let names = rows.columns().collect::<Vec<_>>().join(", ");
            return Err(Failure::refused(
                ErrorCode::NoSuchColumn,
                format!("`types` has {name:?}, and the result has {names}"),
                Some("name a column of the result, or \"table.column\""),
            ));
        }
        Ok(schemas.meanings(rows, types, || types.of(rows)))
    }
}

/// `types(pairs, around)`: what columns mean that are named, each with a word, before those of `around`; the declared types of others
/// count. The number of it.
pub(crate) fn types<'e>(call: &Call<'e, Host>) -> Result<Value<'e>> {
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
