//! How the values of results become JavaScript's: what integers become, and what columns mean.
//!
//! Owns: what a call says of both. Runs on the loop's thread. Invariant: what a call was given holds for all of its result.
//! Leaves out: what types mean, and reading a value (`flatwater-bridge`).

use std::sync::Arc;

use flatwater::{ErrorCode, Rows};
use flatwater_bridge::{Integers, Meaning};

use crate::failure::Failure;
use crate::handles::{Handle, Handles};
use crate::schemas::{Meanings, Schemas};

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
    pub(crate) fn new(handles: &Handles, integers: f64, types: f64) -> Self {
        let integers = match integers as i32 {
            1 => Integers::Auto,
            2 => Integers::Big,
            _ => Integers::Exact,
        };
        let types = match handles.get(types).as_deref() {
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
