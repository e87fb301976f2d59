//! A group: writes that arrived together and run in one transaction, each with its own result.
//!
//! Owns: running the writes of one group, and putting them back into the queue when the transaction is lost. Runs on
//! the writer's thread, which holds the slot. Invariants:
//! - a failed write is undone by its own savepoint, or together with the whole group, never by itself: SQLite leaves
//!   some failed statements half done. A savepoint costs a small write a fifth of its time, so only texts that failed
//!   before get one;
//! - no write is answered before the COMMIT, not even with an error: the error may be due to an earlier write;
//! - a lost transaction, or a failed COMMIT, is followed by a replay in the same order, before any answer;
//! - grouped writes run to their end, whatever becomes of their callers: an interrupt would end the other writes too.
//!   Only a close that leaves the group behind ends them, all together. Whose caller left before his turn is skipped.
//!
//! ```text
//! member 1..k-1 done    member k ends the transaction (RAISE(ROLLBACK), disk full, ...)
//!                       autocommit is on again: the next SAVEPOINT would begin a transaction by itself
//! put back: 1..k-1 as a group again, k alone, then the rest
//! ```
//!
//! Leaves out: which writes may be members (`choice`, `flatwater_sql::class`), what a failed COMMIT means (`failed_commit`).

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use flatwater_sqlite::Interrupt;
use rusqlite::ffi;

use super::choice::Choice;
use super::taken::{put_back, start_from, take};
use crate::options::GroupLimits;
use crate::queue::ticket::{Ticket, left_request};
use crate::workers::Answer;
use crate::workers::outbox::Outbox;
use crate::workers::perform::frame::{Rules, perform_in};
use crate::workers::request::Request;
use crate::workers::work::Work;
use crate::workers::writer::WriterShared;
use crate::workers::writer::commit::commit;
use crate::workers::writer::effects::Effects;
use crate::workers::writer::gathering::Gathering;
use crate::workers::writer::interrupts::{arm_for_all, disarm};
use crate::workers::writer::known_schema::{knows_schema, learn_schema};
use crate::workers::writer::writer_connection::WriterConnection;
use flatwater_base::error::kind::is_damage;
use flatwater_base::error::{Error, ErrorKind, Result};
use flatwater_base::time::later;

/// The outcome of one write.
enum Member {
    Done(Result<Answer>),
    /// The transaction ended, or must be rolled back. `aborting`: the text is the cause.
    Lost {
        aborting: bool,
    },
    /// The file is damaged: each write runs ungrouped.
    Corrupt,
}

/// Runs the started requests of `members` as one group. Leaves `members` empty: each request is answered or back in the
/// queue.
pub(crate) fn run_group(
    writer: &mut WriterConnection,
    shared: &WriterShared,
    limits: GroupLimits,
    members: &mut Vec<Request>,
    choice: &mut Choice,
    outbox: &mut Outbox<'_>,
) {
    let Some(lock) = begin_group(writer, shared, members, outbox) else { return };
    let began_with = members.len();
    let mut results = Vec::with_capacity(began_with);
    let mut effects = Effects::default();
    let began = Instant::now();
    let mut last = began;
    loop {
        if results.len() == members.len() {
            let is_over = last.duration_since(began) >= limits.time;
            if is_over || !joined(writer, shared, members, choice, outbox) {
                break;
            }
            last = Instant::now();
        }
        if !results.is_empty() && last.duration_since(began) >= limits.time {
            break;
        }
        let member = &mut members[results.len()];
        if !member.ticket.finishes() {
            results.push(Err(left_request()));
            continue;
        }
        let outcome = run_member(writer, &mut effects, shared, &member.work);
        let now = Instant::now();
        note_cost(&member.work, now.duration_since(last));
        let lock = if results.len() < began_with { lock } else { Duration::ZERO };
        member.ticket.note_member(lock, last, now.duration_since(last));
        last = now;
        match outcome {
            Member::Done(result) => results.push(result),
            Member::Lost { aborting } => {
                if aborting {
                    mark_aborting(&member.work);
                }
                member.must_be_alone = true;
                return abandon(writer, effects, shared, members);
            }
            Member::Corrupt => {
                members.iter_mut().for_each(|member| member.must_be_alone = true);
                return abandon(writer, effects, shared, members);
            }
        }
    }
    let mut rest = members.split_off(results.len());
    finish(writer, shared, members, results, outbox);
    // If the commit failed, the group is still in `members`, and goes back before the rest.
    members.append(&mut rest);
    put_back(shared, members);
}

/// Begins the transaction of a group, and returns how long it waited for the lock. `None`: it could not, or the schema is
/// another one, and the members are answered or put back.
fn begin_group(
    writer: &mut WriterConnection,
    shared: &WriterShared,
    members: &mut Vec<Request>,
    outbox: &mut Outbox<'_>,
) -> Option<Duration> {
    let waited = writer.busy_timeout.waited();
    let begun = begin(writer, shared, members);
    let lock = writer.busy_timeout.waited().saturating_sub(waited);
    if let Err(error) = begun {
        let now = Instant::now();
        members.iter().for_each(|member| member.ticket.note_member(lock, now, Duration::ZERO));
        could_not_begin(shared, members, outbox, &error);
        return None;
    }
    if !knows_schema(writer).unwrap_or(false) {
        writer.rollback();
        shared.context.catalogue.next_epoch();
        // If this fails, no text is known to be groupable, so each member runs alone and gets the failure itself.
        let _ = learn_schema(writer);
        put_back(shared, members);
        return None;
    }
    Some(lock)
}

/// Returns true if more writes have joined the group, which waits for them for a moment where some are expected.
fn joined(
    writer: &WriterConnection,
    shared: &WriterShared,
    members: &mut Vec<Request>,
    choice: &mut Choice,
    outbox: &mut Outbox<'_>,
) -> bool {
    if !writer.gathering.goes_on() {
        return false;
    }
    let (count, time) = (members.len(), writer.gathering.time(members.len()));
    let more_come = || Gathering::look(time, || shared.pending_writes.load(Ordering::Relaxed) > count as u64);
    join(shared, members, choice, outbox) || choice.is_open() && more_come() && join(shared, members, choice, outbox)
}

/// Adds the writes that have come, and starts them. Returns true if there are any.
fn join(shared: &WriterShared, members: &mut Vec<Request>, choice: &mut Choice, outbox: &mut Outbox<'_>) -> bool {
    let before = members.len();
    if choice.is_open() {
        take(shared, members, choice);
        start_from(shared, before, members, outbox);
    }
    members.len() > before
}

/// Commits and answers the writes. If nothing was committed, they stay in `members`, to be put back and run ungrouped.
fn finish(
    writer: &mut WriterConnection,
    shared: &WriterShared,
    members: &mut Vec<Request>,
    results: Vec<Result<Answer>>,
    outbox: &mut Outbox<'_>,
) {
    let began = Instant::now();
    match commit(writer, shared, None) {
        Ok(()) => {
            writer.gathering.committed(members.len(), began.elapsed(), shared.queue.len());
            if members.len() > 1 {
                shared.context.recorder.committed_group(members.len());
            }
            for (member, result) in members.drain(..).zip(results) {
                outbox.finish(member, result);
            }
        }
        Err(error) if error.kind() == ErrorKind::CommitUnknown => {
            for member in members.drain(..) {
                let error = member.work.explain(error.clone());
                outbox.finish(member, Err(error));
            }
        }
        Err(_) => members.iter_mut().for_each(|member| {
            member.must_be_alone = true;
            shared.context.recorder.counts.replays.count();
        }),
    }
}

/// Ends the wait for the lock when one of the writes does not wait any more. The others then try again.
struct AnyMember(Vec<Arc<Ticket>>);

impl Interrupt for AnyMember {
    fn should_stop(&self) -> bool {
        self.0.iter().any(|ticket| ticket.should_stop())
    }
}

/// Begins the group's transaction. BEGIN IMMEDIATE takes the write locks of attached files too. Members need only the
/// lock of the main file, so with attached files it is tried once, without waiting: if a lock is taken, each member
/// runs alone and waits for the locks that it needs itself.
fn begin(writer: &mut WriterConnection, shared: &WriterShared, members: &mut [Request]) -> Result<()> {
    wait_for_lock(writer, shared, members);
    if !shared.context.options.attach.is_empty() {
        writer.busy_timeout.until_for_all(Instant::now());
    }
    shared.twice(writer, WriterConnection::begin)
}

/// Lets the connection wait for the lock until the wait of any member is over.
pub(crate) fn wait_for_lock(writer: &WriterConnection, shared: &WriterShared, members: &mut [Request]) {
    let now = Instant::now();
    let since = members.iter_mut().map(|member| *member.lock_since.get_or_insert(now)).min();
    let end = later(since.unwrap_or(now), shared.context.options.busy_timeout);
    let any = AnyMember(members.iter().map(|member| member.ticket.clone()).collect());
    writer.busy_timeout.until(end, Arc::new(any));
}

/// Answers the members whose time is up with the error; the others try again. After any other failure, or with attached
/// files, each member runs alone.
fn could_not_begin(shared: &WriterShared, members: &mut Vec<Request>, outbox: &mut Outbox<'_>, error: &Error) {
    if error.kind() != ErrorKind::Busy || !shared.context.options.attach.is_empty() {
        members.iter_mut().for_each(|member| member.must_be_alone = true);
        return put_back(shared, members);
    }
    let now = Instant::now();
    let (over, rest): (Vec<_>, Vec<_>) = members.drain(..).partition(|member| {
        let lock_end = member.lock_since.map(|since| later(since, shared.context.options.busy_timeout));
        lock_end.is_none_or(|end| end <= now) || member.ticket.should_stop()
    });
    for member in over {
        let error = member.work.explain(member.ticket.timed(error.clone()));
        outbox.finish(member, Err(error));
    }
    *members = rest;
    put_back(shared, members);
}

/// Runs one member, inside a savepoint if one of its texts failed before.
fn run_member(writer: &mut WriterConnection, effects: &mut Effects, shared: &WriterShared, work: &Work) -> Member {
    let Ok(connection) = writer.connection() else { return Member::Lost { aborting: false } };
    let is_guarded = work.texts().any(|text| text.has_failed());
    if is_guarded && connection.control.savepoint(&mut connection.sqlite).is_err() {
        return Member::Lost { aborting: false };
    }
    arm_for_all(writer);
    let result = perform_in(writer, effects, Rules::Statement(&shared.context.catalogue), work);
    disarm(writer);
    if effects.has_ungroupable {
        return Member::Lost { aborting: false };
    }
    let code = result.as_ref().err().and_then(Error::sqlite_code).unwrap_or(0);
    if writer.is_autocommit() {
        return Member::Lost { aborting: !is_environment_failure(code) };
    }
    if is_damage(code) {
        return Member::Corrupt;
    }
    if code & 0xff == ffi::SQLITE_FULL {
        // Room is made outside of a transaction only. Alone it runs once more if there is some.
        return Member::Lost { aborting: false };
    }
    let Ok(connection) = writer.connection() else { return Member::Lost { aborting: false } };
    let result = match result {
        Ok(_) if connection.sqlite.handle().has_deferred_violations() => Err(deferred_violation(work)),
        result => result,
    };
    if !is_guarded {
        return match result {
            Ok(_) => Member::Done(result),
            Err(_) => {
                work.texts().for_each(|text| text.mark_failed());
                Member::Lost { aborting: false }
            }
        };
    }
    let closed = match &result {
        Ok(_) => connection.control.release(&mut connection.sqlite),
        Err(_) => connection.control.undo(&mut connection.sqlite),
    };
    if closed.is_err() {
        return Member::Lost { aborting: false };
    }
    Member::Done(result)
}

/// Returns the error of a deferred foreign key violation. In autocommit the violation would fail the statement's own
/// commit.
fn deferred_violation(work: &Work) -> Error {
    let error = Error::from(flatwater_sqlite::SqliteError::from_code(ffi::SQLITE_CONSTRAINT_FOREIGNKEY));
    work.explain(error.with_message("FOREIGN KEY constraint failed".into()))
}

/// Returns true if the failure is not caused by the text.
fn is_environment_failure(code: i32) -> bool {
    let is_of_the_machine =
        matches!(code & 0xff, ffi::SQLITE_IOERR | ffi::SQLITE_FULL | ffi::SQLITE_NOMEM | ffi::SQLITE_INTERRUPT);
    is_of_the_machine || is_damage(code)
}

fn mark_aborting(work: &Work) {
    // For a batch it is not known which statement was the cause. This request runs ungrouped; other requests with its
    // texts may still be grouped.
    if let Some(text) = work.text() {
        text.mark_aborting();
    }
}

fn note_cost(work: &Work, time: Duration) {
    if let Some((text, _)) = work.statement() {
        text.took(time);
    }
}

/// Rolls the group's transaction back and puts all members back into the queue: everything that ran in it runs again.
fn abandon(writer: &mut WriterConnection, effects: Effects, shared: &WriterShared, members: &mut Vec<Request>) {
    writer.rollback();
    effects.clean_up(writer, &shared.context.catalogue);
    members.iter().for_each(|_| shared.context.recorder.counts.replays.count());
    put_back(shared, members);
}
