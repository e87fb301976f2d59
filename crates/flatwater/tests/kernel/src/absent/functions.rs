//! No functions and collations of the program: a connection has SQLite's own, and those of extensions.

pub(crate) mod applied {
    use std::sync::Arc;

    use flatwater_sqlite::{AuthEvent, Sqlite};

    use super::Functions;
    use super::registration::Length;
    use crate::connection::EngineConnection;
    use flatwater_base::error::Result;
    use std::collections::HashSet;

    /// Whether an extension registered something, which may do anything.
    pub(crate) struct Applied(bool);

    impl Applied {
        pub(crate) fn new(_: &Arc<Functions>, _: &Sqlite, has_foreign_code: bool) -> Result<Self> {
            Ok(Self(has_foreign_code))
        }

        pub(crate) fn are_called(&self, _: &[AuthEvent]) -> bool {
            self.0
        }

        pub(crate) fn may_be_called_by(&self, _: &str) -> bool {
            self.0
        }

        pub(crate) fn may_call_foreign_code(&self) -> bool {
            self.0
        }

        pub(crate) fn seen(&self) -> u64 {
            0
        }

        pub(crate) fn of(&self, _: Length) -> HashSet<String> {
            HashSet::new()
        }
    }

    impl EngineConnection {
        pub(crate) fn is_behind(&self) -> bool {
            false
        }

        pub(crate) fn has_lost_function(&self) -> bool {
            false
        }

        pub(crate) fn catch_up(&mut self) -> Result<()> {
            Ok(())
        }
    }
}

pub(crate) mod provided {
    pub(crate) fn provide(_: &rusqlite::Connection) -> rusqlite::Result<()> {
        Ok(())
    }
}

pub(crate) mod registration {
    pub(crate) enum Length {
        Short,
        Timed,
    }
}

use std::sync::Arc;

#[derive(Default)]
pub(crate) struct Functions;

impl Functions {
    pub(crate) fn over(_: Arc<Self>) -> Self {
        Self
    }

    pub(crate) fn let_go(&self) {}
}
