//! The places a database can be in, a file and memory: what holds in both is told once and tested in each.

use flatwater::{Database, Options};

use crate::support::{TestFile, run};

/// Where the database of a test is.
pub(crate) enum Place {
    File(TestFile),
    /// Every opening is a database of its own, and has one connection: its reads wait as its writes do.
    Memory,
}

impl Place {
    pub(crate) fn on_file() -> Self {
        Self::File(TestFile::new())
    }

    pub(crate) fn in_memory() -> Self {
        Self::Memory
    }

    /// An empty place of the same kind.
    pub(crate) fn another(&self) -> Self {
        match self {
            Self::File(_) => Self::on_file(),
            Self::Memory => Self::in_memory(),
        }
    }

    /// What can be opened again, and looked at from outside.
    pub(crate) fn file(&self) -> Option<&TestFile> {
        match self {
            Self::File(file) => Some(file),
            Self::Memory => None,
        }
    }

    /// Whether reads are served while a transaction is open.
    pub(crate) fn has_readers(&self) -> bool {
        matches!(self, Self::File(_))
    }

    pub(crate) fn options(&self) -> Options {
        self.file().map_or_else(|| Options::new(":memory:"), TestFile::options)
    }

    pub(crate) async fn open(&self) -> Database {
        self.options().open().await.unwrap()
    }

    /// Tests a fact here.
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
