//! What a program said of the forms of its values when it opened a database.
//!
//! Owns: keeping it with the handle of the database, whose calls ask for it. Leaves out: binding values (`params`), and what
//! becomes of those of results (`converters`).

use std::sync::Arc;

use flatwater::Session;
use flatwater::bindings::{Target, mark};

use crate::given::converters::Converters;

/// In which form datetimes and dates are stored.
#[derive(Clone, Copy, Default, PartialEq)]
pub(crate) enum Datetimes {
    /// The one that is the same in every language.
    #[default]
    Utc,
    /// That of the adapters of the `sqlite3` module.
    Sqlite3,
}

impl Datetimes {
    #[inline]
    pub(crate) fn of(target: &Target) -> Self {
        target.mark::<Forms>().map_or(Self::Utc, |forms| forms.datetimes)
    }
}

pub(crate) struct Forms {
    pub(crate) datetimes: Datetimes,
    pub(crate) converters: Option<Arc<Converters>>,
}

impl Forms {
    /// Keeps them with a handle that has none.
    pub(crate) fn keep(self, session: &Session) {
        mark(session, self);
    }

    /// Returns the converters of a handle, if the program gave any.
    #[inline]
    pub(crate) fn converters(target: &Target) -> Option<Arc<Converters>> {
        target.mark::<Self>()?.converters.clone()
    }
}
