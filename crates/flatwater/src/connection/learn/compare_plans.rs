//! Comparing the plans of a text that SQLite prepares again for its values.
//!
//! Owns: the step that compares the plan for the values of one call with that for unknown values. Runs on the thread that has the
//! connection, on a worker, at a use in which SQLite prepared the text again. Invariants: no statement sees that a write was
//! explained, which sets `changes()` to 0: the write runs right after it, and does not call `changes()` (`calls_changes`); what
//! cannot be compared is left to SQLite. Leaves out: what is kept of it, and choosing a form (`sql::stable_form`).

use std::sync::Arc;

use flatwater_sqlite::Plans;

use super::calls_changes::explain_write;
use super::strange::strange;
use crate::connection::EngineConnection;
use crate::connection::run::statement_cache::CachedStatement;
use crate::error::Result;
use crate::sql::class::Route;
use crate::sql::stable_form::StableForm;
use crate::values::params::ParamRow;

/// Compares the plans for these values, if SQLite prepared the text again often enough and they were not compared before. Fails
/// only if the open transaction was lost meanwhile.
pub(super) fn compare_plans(
    connection: &mut EngineConnection,
    ready: &CachedStatement,
    params: ParamRow<'_>,
) -> Result<()> {
    let text = &ready.text;
    // A schema of strangers may be long to prepare for, and a few prepares follow.
    let is_of_strangers = connection.sqlite.hooks().interrupts.has_limits();
    if text.is_stable() || !text.is_kept() || !text.stable.is_due() || is_of_strangers {
        return Ok(());
    }
    let was_open = !connection.sqlite.handle().is_autocommit();
    let compared = compare(connection, ready, params);
    // Of one that failed, further uses try again.
    text.stable.is_done();
    match compared {
        Err(error) if was_open && connection.sqlite.handle().is_autocommit() => Err(error.with_sql(&text.sql)),
        _ => Ok(()),
    }
}

fn compare(connection: &mut EngineConnection, ready: &CachedStatement, params: ParamRow<'_>) -> Result<()> {
    let text = &ready.text;
    if ready.class.route == Route::Write {
        let strange = strange(connection)?;
        if explain_write(&mut connection.sqlite, &strange, &text.sql)?.is_none() {
            return Ok(());
        }
    }
    let form = match text.stable.get() {
        Some(form) => form,
        None => {
            let parameters = Plans::of(&mut connection.sqlite).parameters(&text.sql)?.unwrap_or_default();
            if parameters.is_empty() {
                // It was prepared again for another schema, or too many values may matter.
                return Ok(());
            }
            let plan = Plans::of(&mut connection.sqlite).plan::<ParamRow<'_>>(&text.sql, None)?;
            let form = Arc::new(StableForm::new(parameters, plan, |outdated| Arc::new(text.stable_form(outdated))));
            text.stable.set(form.clone());
            form
        }
    };
    let kind = form.kind(&params);
    if form.is_same(kind).is_none() && form.has_room() {
        form.compared(kind, &Plans::of(&mut connection.sqlite).plan(&text.sql, Some(&params))?);
    }
    Ok(())
}
