//! The writer slot while a connection of a caller has it: the writer's connection is lent to it while it writes.
//!
//! Owns: taking the slot where it is free, and giving it back with what was committed meanwhile. Runs on the thread that has
//! the caller's connection, a caller's too. Invariants: nobody else of this engine writes meanwhile; whoever drops it gives the
//! slot back, and no transaction stays open on the writer's connection. Leaves out: waiting for the slot (`waits`), whether a
//! statement needs it (`runner`).

use std::any::Any;
use std::sync::Arc;
use std::time::Instant;

use crate::queue::metrics::PendingWrite;
use crate::workers::Answer;
use crate::workers::writer::effects::Effects;
use crate::workers::writer::known_schema::{forget_schema, has_settled_schema, see_schema};
use crate::workers::writer::slot::{HeldConnection, Slot, enter, leave_beside};
use crate::workers::writer::writer_connection::WriterConnection;
use crate::workers::writer::{Writer, WriterShared};
use flatwater_base::error::{Error, Result};
use flatwater_sql::catalogue::Catalogue;

pub(crate) struct LentSlot {
    pub(super) shared: Arc<WriterShared>,
    /// `None` when it was given back.
    writer: Option<Box<WriterConnection>>,
}

impl LentSlot {
    /// Takes the slot, if it is free and nothing has to be waited for.
    pub(super) fn take_idle(writer: &Writer) -> Option<Self> {
        let shared = &writer.0;
        if shared.pauses_writes(Instant::now()) || shared.is_left() {
            return None;
        }
        let mut slot = Slot::acquire_idle(writer)?;
        slot.run(|connection, _| {
            enter(shared, connection);
            see_schema(connection, &shared.context.catalogue.left);
        });
        Some(Self { shared: shared.clone(), writer: Some(slot.lend()) })
    }

    /// The same on the thread of a caller: the writer's connection stays as it is. A turn of this process that is kept is
    /// for short writes, so `is_short` says whether a transaction begins.
    pub(super) fn take_shortly(writer: &Writer, is_short: bool, now: Instant) -> Option<Self> {
        let shared = &writer.0;
        let is_kept = shared.context.turnstile.as_ref().is_some_and(|turnstile| turnstile.is_kept());
        if (is_kept && !is_short) || shared.pauses_writes(now) || shared.is_left() {
            return None;
        }
        let _pending = PendingWrite::new(&*shared.pending_writes);
        let mut slot = Slot::acquire_idle(writer)?;
        let is_usable = slot.run(|connection, _| {
            connection.end_lease();
            shared.record(connection);
            let is_sound = connection.wal_now().is_some() && connection.refusal().is_none();
            // Otherwise each commit would make others look whether the schema has changed.
            is_sound && has_settled_schema(connection)
        });
        is_usable.then(|| Self { shared: shared.clone(), writer: Some(slot.lend()) })
    }

    /// Takes the slot on the writer's thread. Returns `None` if the engine is gone.
    pub(crate) fn lent(shared: &WriterShared, held: &mut HeldConnection) -> Option<Self> {
        let shared = shared.this.upgrade()?;
        see_schema(held, &shared.context.catalogue.left);
        Some(Self { shared, writer: Some(held.lend()) })
    }

    /// Returns the answer to who asked for a slot.
    pub(crate) fn answer(self) -> Answer {
        Answer::Returned(Box::new(self), None)
    }

    /// Returns the slot that the writer answered with.
    pub(super) fn of(answer: Answer) -> Result<Self> {
        let Answer::Returned(slot, _) = answer else { return Err(Error::closed()) };
        let slot: Box<dyn Any> = slot;
        slot.downcast::<Self>().map(|slot| *slot).map_err(|_| Error::closed())
    }

    /// The writer's connection: the only one of a database in memory.
    pub(super) fn writer(&mut self) -> &mut WriterConnection {
        self.writer.as_mut().expect("it is given back only with the slot")
    }

    /// Gives the slot back. `own` is the connection that wrote, if it is not the writer's, with these effects.
    pub(super) fn give_back(mut self, own: Option<&mut WriterConnection>, effects: &Effects) {
        self.end(own, effects);
    }

    fn end(&mut self, own: Option<&mut WriterConnection>, effects: &Effects) {
        let Some(connection) = self.writer.take() else { return };
        let writer = Writer(self.shared.clone());
        let mut slot = Slot::lent_back(&writer, connection);
        slot.run(|held, _| {
            held.rollback();
            tell_of_schema(held, effects, &self.shared.context.catalogue);
            let now = Instant::now();
            match own {
                Some(own) => leave_beside(&self.shared, held, own, now),
                None => {
                    let left = held.wal_now();
                    self.shared.leave(held, left.as_ref(), now);
                }
            }
        });
    }
}

impl Drop for LentSlot {
    fn drop(&mut self) {
        self.end(None, &Effects::default());
    }
}

/// What is known of the schema is out of date if it was changed.
fn tell_of_schema(writer: &mut WriterConnection, effects: &Effects, catalogue: &Catalogue) {
    if effects.defined {
        forget_schema(writer);
        catalogue.next_epoch();
        if let Some(connection) = &mut writer.connection {
            connection.statements.clear(&mut connection.sqlite);
        }
    }
}
