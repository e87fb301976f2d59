//! The two sides of a run, which is one copy or one switch.
//!
//! Owns: whether a later run has begun. Invariant: a run that is overtaken changes the target no more, but for what it sends at that moment.
//! Leaves out: what a run does.

use flatwater::{Error, Result, Session};

use crate::log;
use crate::rows::refused;
use crate::table::quoted;

/// The two sides.
pub(crate) struct Sides<'a> {
    pub(crate) from: &'a Session,
    pub(crate) to: &'a Session,
    /// The number of this copy or switch.
    pub(crate) run: &'a str,
}

impl Sides<'_> {
    /// Ends a run of which a later one has begun, before it changes the target again: the later one may be a switch, and over soon.
    pub(crate) async fn check(&self) -> Result<()> {
        match log::is_newest(self.from, self.run).await? {
            true => Ok(()),
            false => Err(overtaken()),
        }
    }

    /// Returns why this run has ended: its error, or that a later one has begun.
    pub(crate) async fn why_ended(&self, error: Error) -> Error {
        if matches!(log::is_newest(self.from, self.run).await, Ok(false)) { overtaken() } else { error }
    }

    /// Removes from the target those triggers that the program has on the source, too: none fires for rows that are moved.
    pub(crate) async fn drop_triggers(&self) -> Result<()> {
        let all = "SELECT name FROM sqlite_schema WHERE type = 'trigger'";
        let of_source: Vec<String> = self.from.query_values(all, ()).await?;
        let of_target: Vec<String> = self.to.query_values(all, ()).await?;
        let both = of_target.iter().filter(|name| of_source.contains(name));
        let script: String = both.map(|name| format!("DROP TRIGGER IF EXISTS {};", quoted(name))).collect();
        self.check().await?;
        if script.is_empty() { Ok(()) } else { self.to.execute_script(script).await }
    }
}

/// The error of a run of which a later one has begun.
pub(crate) fn overtaken() -> Error {
    refused("another copy or switch of this database has begun".into(), "let that one end, and begin this one again")
}
