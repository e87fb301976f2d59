//! Which move a source and a target belong to.
//!
//! Owns: the number of the move on both sides, and where a source is. Invariant: the target has the number before the source says that
//! it is bound. Leaves out: the log.

use flatwater::{Result, Session};

use crate::log::{self, MOVE};
use crate::rows::refused;
use crate::table::literal;

/// On the target: the number of the move that copies to it.
const MARK: &str = "_flatwater_arrival";

/// Where a source is.
pub(crate) enum State {
    Untouched,
    /// It is copied: the number of the move, and whether the target has it.
    Moving(String, bool),
    /// The switch is over.
    Moved,
}

/// Where the source is.
pub(crate) async fn state(of: &Session) -> Result<State> {
    if has_table(of, MOVE).await? {
        let (number, is_bound) = of.query_one_as(format!("SELECT number, bound FROM {MOVE}"), ()).await?;
        return Ok(State::Moving(number, is_bound));
    }
    Ok(if log::refuses(of).await? { State::Moved } else { State::Untouched })
}

pub(crate) async fn has_table(of: &Session, name: &str) -> Result<bool> {
    let sql = "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = ?";
    Ok(of.query_value::<i64>(sql, (name,)).await? > 0)
}

/// The number of the move that copies to this target.
pub(crate) async fn mark_of(target: &Session) -> Result<Option<String>> {
    match has_table(target, MARK).await? {
        true => target.query_optional_value(format!("SELECT number FROM {MARK}"), ()).await,
        false => Ok(None),
    }
}

/// Has the target know the move.
pub(crate) async fn bind(source: &Session, target: &Session, number: &str) -> Result<()> {
    let number = literal(number);
    let mark = format!(
        "DROP TABLE IF EXISTS {MARK}; CREATE TABLE {MARK} (number TEXT NOT NULL); INSERT INTO {MARK} VALUES ({number});"
    );
    target.execute_script(mark).await?;
    source.execute(format!("UPDATE {MOVE} SET bound = 1"), ()).await.map(drop)
}

/// Has the target forget the move.
pub(crate) async fn forget(target: &Session) -> Result<()> {
    target.execute(format!("DROP TABLE IF EXISTS {MARK}"), ()).await.map(drop)
}

/// A number that no other move has.
pub(crate) async fn new_number(source: &Session) -> Result<String> {
    source.query_value("SELECT hex(randomblob(16))", ()).await
}

/// The error of a source that has moved.
pub(crate) fn has_moved() -> flatwater::Error {
    refused(
        "this database has moved already".into(),
        "`give-up` has it take writes again, and the target go its own way",
    )
}
