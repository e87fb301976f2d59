//! No migrations: none can be asked for.

use flatwater_base::error::Result;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Migrations {}

impl Migrations {
    pub(crate) fn steps(&self) -> Result<()> {
        match *self {}
    }
}
