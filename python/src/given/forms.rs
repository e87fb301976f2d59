//! What a program said of the forms of its values and rows: when it opened a database, and of one call.
//!
//! Owns: keeping the former with the handle of the database, whose calls ask for it. Leaves out: binding values (`params`), and
//! what becomes of those of results (`reading`).

use std::sync::Arc;

use flatwater::Session;
use flatwater::bindings::{Target, mark};
use pyo3::prelude::*;

use crate::given::reading::{Reading, types_of};

/// In which forms values are stored.
#[derive(Clone, Copy, Default, PartialEq)]
pub(crate) struct Written {
    /// Datetimes and dates have that of the adapters of the `sqlite3` module. Otherwise it is the same in every language.
    pub(crate) sqlite3_datetimes: bool,
    /// Dicts, lists and decimals are stored, too.
    pub(crate) standard: bool,
}

impl Written {
    #[inline]
    pub(crate) fn of(target: &Target) -> Self {
        target.mark::<Forms>().map_or_else(Self::default, |forms| forms.written)
    }
}

#[derive(Clone, Default)]
pub(crate) struct Forms {
    pub(crate) written: Written,
    /// How results are read, if the program said it.
    pub(crate) reading: Option<Arc<Reading>>,
    /// What becomes of rows, if the program said it.
    pub(crate) into: Option<Arc<Py<PyAny>>>,
}

impl Forms {
    /// Keeps them with a handle that has none.
    pub(crate) fn keep(self, session: &Session) {
        mark(session, self);
    }

    /// Returns those of a handle.
    #[inline]
    pub(crate) fn of(target: &Target) -> Self {
        target.mark::<Self>().cloned().unwrap_or_default()
    }

    /// Returns what becomes of the rows of a handle, if it was said.
    pub(crate) fn into_of(target: &Target) -> Option<&Py<PyAny>> {
        target.mark::<Self>()?.into.as_deref()
    }

    /// Returns those of a call, which may say its types itself.
    pub(crate) fn of_call(target: &Target, types: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        let Self { written, reading, into } = Self::of(target);
        let Some(types) = types else { return Ok(Self { written, reading, into }) };
        let types = types_of(types)?;
        let written = Written { standard: types.is_some(), ..written };
        Ok(Self { written, reading: Reading::of_call(reading.as_deref(), types), into })
    }
}
