//! Short statements of a connection of a caller: which run on the thread of their call, and running one.
//!
//! Owns: what else holds for such a connection: its schema, its transaction, and the slot that its writes take. Runs on
//! callers' threads, which have taken the connection out of the inbox. Invariants: a statement waits for nothing, neither for
//! the slot nor for a lock of the file, and prepares nothing; what fails leaves nothing behind, unless it may have been committed.
//! Leaves out: the inbox, and giving the slot back (`inline`); how long a statement takes (`short::gate`), the limits of such a run (`writer::inline_access`).

use std::sync::Arc;

use super::lent_slot::LentSlot;
use super::runner::Runner;
use crate::connection::EngineConnection;
use crate::connection::run::statement_cache::CachedStatement;
use crate::workers::Answer;
use crate::workers::short::gate::{self, Place};
use crate::workers::short::run::run_short;
use crate::workers::short::transaction::begin;
use crate::workers::short::write::{Ended, Write};
use crate::workers::work::Work;
use crate::workers::writer::Writer;
use crate::workers::writer::inline_access::run_inline;
use crate::workers::writer::known_schema::{has_seen_schema, has_settled_schema};
use crate::workers::writer::writer_connection::WriterConnection;
use flatwater_base::error::{Error, Result};
use flatwater_base::inline::eligibility::Permit;
use flatwater_base::inline::outcome::Fallback;
use flatwater_base::values::outcome::ExecuteResult;
use flatwater_sql::catalogue::LeftWal;
use flatwater_sql::statement_info::StatementInfo;
use flatwater_sql::text::Bracket;

/// How a statement ended that ran on its caller's thread.
pub(super) enum Ran {
    Done(Result<Answer>),
    FellBack(Fallback),
    /// It may have been committed. With the change counter of the WAL from before it.
    Unsettled(Error, u32),
}

/// A run on the thread of a caller.
pub(super) struct ShortRun<'a> {
    pub(super) runner: &'a mut Runner,
    pub(super) writer: &'a Writer,
    pub(super) permit: &'a Permit<'a>,
}

impl ShortRun<'_> {
    /// Runs the work, if it is known to be short and needs no slot that is not free.
    pub(super) fn run(&mut self, work: &Work) -> Option<Ran> {
        let (text, _) = work.statement()?;
        let own = self.runner.connection.as_ref().filter(|own| own.is_open())?;
        let (is_autocommit, only_reads) = (own.is_autocommit(), work.describe().only_reads());
        match text.bracket {
            Some(bracket) if matches!(work, Work::Execute { .. }) => self.bracket(bracket),
            Some(_) => None,
            None if is_autocommit && !only_reads => self.write_alone(text, work),
            None => self.statement(text, work),
        }
    }

    /// Runs a read, or a write in a transaction, which takes the slot if it is the first one after BEGIN.
    fn statement(&mut self, text: &StatementInfo, work: &Work) -> Option<Ran> {
        let (left, only_reads) = (&self.writer.0.context.catalogue.left, work.describe().only_reads());
        // What a virtual table has collected would be written with the savepoint of the write.
        if !self.knows_schema(left) || !only_reads && self.runner.effects.wrote_virtual == Some(true) {
            return None;
        }
        let (own, limits) = (self.runner.connection.as_mut()?, self.permit.limits);
        let ready =
            if only_reads { gate::read(own, text, limits) } else { gate::write(own, text, Place::Inside, limits) }?;
        if !only_reads && self.runner.slot.is_none() {
            self.take_slot(false)?;
            // Somebody may have changed it meanwhile.
            self.knows_schema(left).then_some(())?;
        }
        let own = self.runner.connection.as_mut()?;
        let was_autocommit = own.is_autocommit();
        let (answer, took) = run_short(own, &ready, work, self.permit)?;
        // SQLite has ended the transaction.
        let is_lost = !was_autocommit && own.is_autocommit();
        Some(match answer {
            Ok(answer) => {
                if !only_reads {
                    self.runner.worked += took;
                }
                Ran::Done(Ok(answer))
            }
            Err(error) if is_lost => Ran::Done(Err(error)),
            Err(error) => Ran::FellBack(Fallback::after(error.sqlite_code())),
        })
    }

    /// Returns true if the next statement sees the schema that the connection has seen: the newest one, if the statement
    /// begins a snapshot, or the one of a transaction that writes, where nobody else can change it.
    fn knows_schema(&self, left: &LeftWal) -> bool {
        let Some(own) = &self.runner.connection else { return false };
        let Some((EngineConnection { sqlite, .. }, (state, _))) = own.connection.as_ref().zip(own.wal_now()) else {
            return false;
        };
        match self.runner.slot.is_some() && sqlite.handle().is_writing() {
            true => !self.runner.effects.defined && has_settled_schema(own),
            false => !sqlite.handle().has_begun() && has_seen_schema(own, &state, left),
        }
    }

    /// Runs a write that commits by itself.
    fn write_alone(&mut self, text: &StatementInfo, work: &Work) -> Option<Ran> {
        let permit = self.permit;
        let own = self.runner.connection.as_mut()?;
        let ready = gate::write(own, text, Place::Alone, permit.limits).filter(is_undone_if_it_fails)?;
        self.take_slot(true)?;
        let commits_slowly = self.runner.commits_slowly;
        let own = self.runner.connection.as_mut()?;
        let (state, _) = gate::commit(own).filter(|_| !commits_slowly)?;
        let write = Write { text, work, permit };
        Some(match self.writer.0.write(own, &write, &ready, &state)? {
            Ended::Well(answer) => Ran::Done(Ok(answer)),
            Ended::Fallback(why) => Ran::FellBack(why),
            Ended::Unsettled(error) => Ran::Unsettled(error, state.change()),
        })
    }

    /// Begins a transaction or ends it.
    fn bracket(&mut self, bracket: Bracket) -> Option<Ran> {
        let permit = self.permit;
        let own = self.runner.connection.as_mut()?;
        // Outside of WAL mode every transaction has the slot.
        own.wal_now()?;
        match (bracket, own.is_autocommit()) {
            (Bracket::Begin, true) => {
                let (begun, _) =
                    control(own, permit, |EngineConnection { sqlite, control, .. }| control.begin_read(sqlite))?;
                Some(ran(begun))
            }
            (Bracket::BeginWriting, true) => {
                self.take_slot(false)?;
                let begun = begin(&self.writer.0, self.runner.connection.as_mut()?, permit)?;
                Some(begun.map_or_else(Ran::FellBack, |()| ran(Ok(()))))
            }
            (Bracket::Commit, false) => self.end(true),
            (Bracket::Rollback, false) => self.end(false),
            // SQLite refuses it.
            _ => None,
        }
    }

    /// Commits the open transaction or rolls it back, if that is short.
    fn end(&mut self, commits: bool) -> Option<Ran> {
        let (runner, permit) = (&mut *self.runner, self.permit);
        let (slot, done) = (runner.slot.is_some(), (runner.worked, &runner.effects));
        let own = runner.connection.as_mut()?;
        let writes = own.connection.as_ref()?.sqlite.handle().is_writing();
        let state = match writes {
            true => gate::end(own, done, (commits, runner.commits_slowly), permit.limits).filter(|_| slot)?,
            false => own.wal_now()?.0,
        };
        let (ended, is_over) = control(own, permit, |EngineConnection { sqlite, control, .. }| match commits {
            true => control.commit(sqlite),
            false => control.rollback(sqlite),
        })?;
        Some(match ended {
            Err(error) if commits && is_over => Ran::Unsettled(error, state.change()),
            ended => ran(ended),
        })
    }

    /// Takes the slot if it is free, as `Runner::takes` does on a helper thread.
    fn take_slot(&mut self, is_short: bool) -> Option<()> {
        let slot = LentSlot::take_shortly(self.writer, is_short, self.permit.began)?;
        if let Some(own) = &mut self.runner.connection {
            slot.shared.record(own);
        }
        self.runner.slot = Some(slot);
        Some(())
    }
}

/// Runs transaction control, under the rules of an inline run. Also returns whether no transaction is open after it.
fn control(
    own: &mut WriterConnection,
    permit: &Permit<'_>,
    f: impl FnOnce(&mut EngineConnection) -> flatwater_sqlite::Result<()>,
) -> Option<(Result<()>, bool)> {
    let ended = run_inline(own, permit, |own| Ok(f(own.connection()?)?))?;
    Some((ended, own.is_autocommit()))
}

fn ran(control: Result<()>) -> Ran {
    match control {
        Ok(()) => Ran::Done(Ok(Answer::Executed(ExecuteResult::default()))),
        Err(error) => Ran::FellBack(Fallback::after(error.sqlite_code())),
    }
}

/// Returns true if SQLite undoes all of the write when it fails, in autocommit.
fn is_undone_if_it_fails(ready: &Arc<CachedStatement>) -> bool {
    ready.class.groupable
}
