//! One query on a reader.
//!
//! Owns: preparing and running it, or opening its cursor. Runs on the thread that has the reader. Invariants: a query runs
//! armed, so that it ends when its caller gives it up; what turns out to be a write does not run. Leaves out: the
//! transaction around it (`perform_read`).

use std::sync::Arc;

use flatwater_sqlite::Interrupt;

use super::reader::{Performed, Reader};
use crate::connection::learn::analyse::learn;
use crate::connection::learn::schema::SchemaFacts;
use crate::connection::run::batches::{Batch, LastPart, execute_in_parts};
use crate::connection::run::blobs::use_blob;
use crate::connection::run::execute::{Bounds, StatementRun, output_of};
use crate::connection::run::prepare::refuse_change_function;
use crate::connection::run::statement_cache::CachedStatement;
use crate::workers::Answer;
use crate::workers::work::{Wanted, Work};
use flatwater_base::error::{Error, ErrorCode, Result};
use flatwater_base::thread::current::RunTime;
use flatwater_base::values::params::{ParamRow, Params};
use flatwater_sql::class::Route;
use flatwater_sql::policy;
use flatwater_sql::statement_info::StatementInfo;

/// Runs a query that `interrupt` may end, or opens a cursor; or compiles a text.
pub(super) fn query(reader: &mut Reader, work: Work, interrupt: &Arc<dyn Interrupt>) -> Performed {
    if let Work::Blob(blob) = &work {
        return match blob.only_reads() {
            true => {
                Performed::Answered(use_blob(&mut reader.connection, blob).map(|used| Answer::Blob(Box::new(used))))
            }
            false => Performed::Write(work, None),
        };
    }
    let (Work::Query { text, .. } | Work::Execute { text, .. } | Work::Prepare(text)) = &work else {
        return Performed::Write(work, None);
    };
    if matches!(work, Work::Prepare(_)) && text.tells_of_its_prepare {
        return Performed::Answered(Ok(Answer::Prepared(text.clone(), None)));
    }
    if reader.in_snapshot.is_some() && text.route() == Some(Route::Write) && !text.tells_of_its_prepare {
        // Whether it compiles under the schema of the snapshot makes no difference.
        return Performed::Write(work, None);
    }
    let ready = match prepare(reader, text, interrupt) {
        Ok(ready) => ready,
        Err(error) if error.sqlite_code().is_some() => return Performed::Write(work, Some(error)),
        Err(error) => return Performed::Answered(Err(error)),
    };
    if reader.learns() {
        text.learn_route(ready.class.route);
    }
    if let Err(error) = refuse_change_function(&ready) {
        reader.connection.done_with(&ready);
        return Performed::Answered(Err(error));
    }
    let (params, in_batches) = match &work {
        Work::Query { params, wanted, .. } => (params, matches!(wanted, Wanted::Batches)),
        Work::Execute { params, .. } if ready.class.reads_setting => (params, false),
        other => {
            reader.connection.done_with(&ready);
            let names = || Some(ready.names.clone());
            let prepared = matches!(other, Work::Prepare(_)).then(|| Answer::Prepared(text.clone(), names()));
            return prepared.map_or_else(|| Performed::Write(work, None), |text| Performed::Answered(Ok(text)));
        }
    };
    let result = if ready.class.route == Route::Write {
        None
    } else if ready.class.columns == 0 && !ready.class.reads_setting && !work.takes_any() {
        Some(Err(Error::new(ErrorCode::ReturnsNoRows, "the statement returns no rows").with_sql(&text.sql)))
    } else if in_batches {
        return run_in_batches(reader, text, ready, params, interrupt);
    } else {
        reader.connection.sqlite.hooks().interrupts.arm(interrupt.clone());
        let time = RunTime::begin();
        let mut answer = run(reader, &work, &ready, params.row());
        reader.connection.sqlite.hooks().interrupts.disarm();
        if reader.learns() {
            answer = answer
                .and_then(|answer| learn(&mut reader.connection, &ready, params.row(), Some(time)).map(|()| answer));
        }
        Some(answer)
    };
    reader.connection.done_with(&ready);
    result.map_or(Performed::Write(work, None), Performed::Answered)
}

/// Returns the statement of a text. A view of strangers may be long to prepare.
fn prepare(
    reader: &mut Reader,
    text: &Arc<StatementInfo>,
    interrupt: &Arc<dyn Interrupt>,
) -> Result<Arc<CachedStatement>> {
    let interrupts = &reader.connection.sqlite.hooks().interrupts;
    if interrupts.has_limits() {
        interrupts.arm(interrupt.clone());
    }
    let ready = reader.connection.ready(text, policy::statement, &SchemaFacts::default());
    reader.connection.sqlite.hooks().interrupts.disarm();
    ready
}

/// Runs a query whose rows are fetched in batches, up to the end of the first.
fn run_in_batches(
    reader: &mut Reader,
    text: &Arc<StatementInfo>,
    ready: Arc<CachedStatement>,
    params: &Params,
    interrupt: &Arc<dyn Interrupt>,
) -> Performed {
    reader.connection.sqlite.hooks().interrupts.arm(interrupt.clone());
    // What is learnt afterwards may end the transaction, which a snapshot needs.
    let is_to_learn = reader.in_snapshot.is_none() && !ready.is_known();
    let started = reader.cursors.start(&mut reader.connection, ready, params.clone());
    reader.connection.sqlite.hooks().interrupts.disarm();
    if is_to_learn && matches!(started, Ok(Batch { cursor: None, .. })) {
        learn_again(reader, text, params);
    }
    match started {
        Ok(Batch { rows, cursor: Some(number) }) => Performed::Opened(Some((rows, number))),
        Ok(Batch { rows, cursor: None }) => Performed::Answered(Ok(Answer::Rows(rows))),
        Err(error) => Performed::Answered(Err(error)),
    }
}

/// Counts a use of a text whose cursor has ended, as `learn` does: its next batches may run inline.
fn learn_again(reader: &mut Reader, text: &Arc<StatementInfo>, params: &Params) {
    if let Ok(ready) = reader.connection.ready(text, policy::statement, &SchemaFacts::default()) {
        // Its transaction has ended, so none can be lost.
        let _ = learn(&mut reader.connection, &ready, params.row(), None);
        reader.connection.done_with(&ready);
    }
}

/// Runs a prepared query.
fn run(reader: &mut Reader, work: &Work, statement: &CachedStatement, params: ParamRow<'_>) -> Result<Answer> {
    if let Work::Query { wanted: Wanted::Parts(parts), .. } = work {
        let ran = execute_in_parts(&mut reader.connection, statement, params, |part| parts.hand_over(part));
        return ran.map(|LastPart { rows, before }| Answer::LastPart(Box::new((rows, before))));
    }
    let output = if work.takes_any() { output_of(statement) } else { work.output() };
    let run = StatementRun { statement, params, output, bounds: Bounds::Armed };
    reader.connection.execute(&run).map(Answer::from)
}
