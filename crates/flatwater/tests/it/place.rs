//! The places of a database, a file and memory: a fact that holds in both is written once and tested in each.

use flatwater::{Database, Options};

use crate::support::{TestFile, run};

/// The place of a test's database.
pub(crate) enum Place {
    File(TestFile),
    /// Every open creates a separate database with one connection: its reads wait in the same way as its writes.
    Memory,
}

impl Place {
    pub(crate) fn on_file() -> Self {
        Self::File(TestFile::new())
    }

    pub(crate) fn in_memory() -> Self {
        Self::Memory
    }

    /// Returns an empty place of the same kind.
    pub(crate) fn another(&self) -> Self {
        match self {
            Self::File(_) => Self::on_file(),
            Self::Memory => Self::in_memory(),
        }
    }

    /// Returns the file, which can be opened again and read by another connection.
    pub(crate) fn file(&self) -> Option<&TestFile> {
        match self {
            Self::File(file) => Some(file),
            Self::Memory => None,
        }
    }

    /// Returns whether reads are served while a transaction is open.
    pub(crate) fn has_readers(&self) -> bool {
        matches!(self, Self::File(_))
    }

    pub(crate) fn options(&self) -> Options {
        self.file().map_or_else(|| Options::new(":memory:"), TestFile::options)
    }

    pub(crate) async fn open(&self) -> Database {
        self.options().open().await.unwrap()
    }

    /// Tests a fact in this place.
    pub(crate) fn check(self, fact: impl AsyncFnOnce(&Self)) {
        run(fact(&self));
    }
}

/// Makes two tests of each fact, an `async fn(&Place)`: `on_file::fact` and `in_memory::fact`.
macro_rules! in_both_places {
    ($($fact:ident),+ $(,)?) => {
        mod on_file {
            $(#[test]
            fn $fact() {
                crate::place::Place::on_file().check(super::$fact);
            })+
        }
        mod in_memory {
            $(#[test]
            fn $fact() {
                crate::place::Place::in_memory().check(super::$fact);
            })+
        }
    };
}
pub(crate) use in_both_places;
