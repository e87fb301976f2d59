//! Changing the key of a database: all connections are closed, and opened again with the new key.
//!
//! Owns: the order of it. Runs on the thread that holds the slot. Invariants: from the first step to the last no other
//! connection of this process is opened, as while a database is parked; whatever fails, the database has the key that
//! opens its file. Leaves out: encrypting the file (`connection::exclusive::change_key`).

use std::sync::Arc;
use std::time::Instant;

use crate::connection::exclusive::change_key::change_key;
use crate::error::hint::hint;
use crate::error::{Error, ErrorKind, Result};
use crate::options::Key;
use crate::queue::ticket::Ticket;
use crate::workers::Answer;
use crate::workers::writer::close_connection::drop_connection;
use crate::workers::writer::writer_connection::WriterConnection;

/// Encrypts the database with `new`. Waits for reads in progress, and for other processes, as long as for a lock.
pub(crate) fn rekey(writer: &mut WriterConnection, new: &Key, ticket: &Arc<Ticket>) -> Result<Answer> {
    let context = writer.context.clone();
    let options = &context.options;
    let (Some(key), Some(watch)) = (&options.key, &context.watch) else {
        return Err(Error::misuse("the database is not encrypted, so it has no key to change")
            .with_hint(hint![Export " makes an encrypted copy of it"]));
    };
    if !options.attach.is_empty() {
        return Err(Error::misuse("the attached files have the same key, and would keep it")
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
