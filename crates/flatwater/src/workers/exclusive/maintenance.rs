//! Work that concerns the file: VACUUM, another key, and a backup of a database that has no other connection.
//!
//! Owns: the steps around each. Runs on the thread that holds the slot. Invariants: no transaction is open afterwards; a vacuum that
//! fails has changed nothing, and after it the connection has the settings of its options, or is not used again; while the key is
//! changed no other connection of this process is opened, and whatever fails, the database has the key that opens its file. Leaves
//! out: the statement VACUUM, which runs as any other (`autocommit`), encrypting the file and the copy (`connection::exclusive`).
//!
//! VACUUM builds the new database in a temporary one, commits it to the WAL as one transaction, and needs the lock of
//! writers for that (`sqlite3RunVacuum`). A temporary database of the writer is in memory, where a large file has no
//! room. What is in the WAL then is copied into the file, which gets shorter by that.

use std::sync::Arc;
use std::time::Instant;

use flatwater_sqlite::CheckpointMode;

use crate::connection::EngineConnection;
use crate::connection::exclusive::another_key::change_key;
use crate::connection::exclusive::copy::{Copy, copy};
use crate::connection::open::switches::{in_definitions, temp_store};
use crate::options::{Key, TempStore};
use crate::queue::ticket::Ticket;
use crate::workers::Answer;
use crate::workers::perform::autocommit::autocommit;
use crate::workers::work::Work;
use crate::workers::writer::WriterShared;
use crate::workers::writer::close_connection::drop_connection;
use crate::workers::writer::demanded_checkpoint::checkpoint;
use crate::workers::writer::interrupts::{disarm, ends};
use crate::workers::writer::writer_connection::WriterConnection;
use flatwater_base::error::hint::hint;
use flatwater_base::error::{Error, ErrorCode, ErrorKind, Result};
use flatwater_base::values::params::Params;
use flatwater_sql::statement_info::StatementInfo;

/// The value of `PRAGMA temp_store` for files.
const IN_FILES: i64 = 1;

pub(crate) fn vacuum(
    writer: &mut WriterConnection,
    shared: &WriterShared,
    text: Arc<StatementInfo>,
    ticket: &Arc<Ticket>,
) -> Result<Answer> {
    let work = Work::execute(text, Params::default());
    let options = &shared.context.options;
    let moves = options.temp_store == TempStore::Auto && !options.is_memory();
    shared.twice(writer, |writer| {
        let connection = writer.connection()?;
        if moves {
            store_temp(connection, IN_FILES)?;
        }
        in_definitions(&connection.sqlite, true)?;
        let done = autocommit(writer, shared, &work, ticket);
        disarm(writer);
        let is_back = |connection: &mut EngineConnection| {
            in_definitions(&connection.sqlite, options.double_quoted_strings).is_ok()
                && (!moves || store_temp(connection, temp_store(options, true)).is_ok())
        };
        if writer.is_open() && !writer.connection().is_ok_and(is_back) {
            writer.replace();
        }
        done
    })?;
    if shared.journal == "wal" && !shared.context.is_external() {
        // What cannot be copied now is copied later: the vacuum is committed.
        let _ = checkpoint(writer, shared, CheckpointMode::Passive);
    }
    Ok(Answer::Done)
}

fn store_temp(connection: &mut EngineConnection, at: i64) -> Result<()> {
    Ok(connection.sqlite.execute_batch(&format!("PRAGMA temp_store = {at}"))?)
}

/// Encrypts the database with `new`. Waits for reads in progress, and for other processes, as long as for a lock.
pub(crate) fn rekey(writer: &mut WriterConnection, new: &Key, ticket: &Arc<Ticket>) -> Result<Answer> {
    let context = writer.context.clone();
    let options = &context.options;
    let (Some(key), Some(watch)) = (&options.key, &context.watch) else {
        return Err(Error::new(ErrorCode::NoEncryption, "the database is not encrypted, so it has no key to change")
            .with_hint(hint![Export " makes an encrypted copy of it"]));
    };
    if !options.attach.is_empty() {
        return Err(Error::new(ErrorCode::Unsupported, "the attached files have the same key, and would keep it")
            .with_hint("open each file by itself, and change its key"));
    }
    if let Some(refusal) = writer.refusal() {
        return Err(refusal);
    }
    writer.connection()?;
    let drain = watch.drains.begin();
    drop(watch.unguard());
    drop_connection(writer, !context.is_external());
    watch.parked.begin();
    context.turnstile.iter().for_each(|turnstile| turnstile.let_go(false));
    let (mut again, mut tries) = (writer.busy(), 0);
    let changed = loop {
        drain.collect();
        match change_key(options, key, new) {
            Err(error) if error.kind() == ErrorKind::Busy && again(tries) => tries += 1,
            changed => break changed,
        }
    };
    if changed.is_ok() {
        key.become_key(new);
    }
    drop(drain);
    writer.wait_for_locks(Instant::now(), ticket);
    let opened = writer.connection().map(drop);
    changed.map_err(in_use).and(opened).map(|()| Answer::Done)
}

fn in_use(error: Error) -> Error {
    if error.kind() != ErrorKind::Busy {
        return error;
    }
    error
        .with_message("the key cannot be changed while another connection has the file open".into())
        .with_hint("end reads, snapshots and streams of this process, and close the database in other processes")
}

pub(crate) fn backup(
    writer: &mut WriterConnection,
    shared: &WriterShared,
    form: &Copy,
    ticket: &Arc<Ticket>,
) -> Result<Answer> {
    let ends = ends(writer, ticket);
    let copied = copy(writer.connection()?, &shared.context.options, form, &ends);
    writer.rollback();
    match copied {
        Err(_) if shared.is_left() => Err(Error::closed()),
        copied => copied.map(Answer::of_copy),
    }
}
