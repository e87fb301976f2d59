//! What the statements of one transaction did that must be cleaned up when the transaction is over.
//!
//! Owns: recording it statement by statement, and putting it right. Belongs to the transaction, autocommit included,
//! and not to the connection. Runs on the thread that holds the slot. Invariant: neither a TEMP object nor anything
//! learnt under a schema that was not committed outlives the transaction. Leaves out: the schema as it is seen at the
//! next use (`connection::learn::schema`).

use super::known_schema::forget_schema;
use super::writer_connection::WriterConnection;
use crate::connection::repair::drop_temp_objects;
use flatwater_sql::catalogue::Catalogue;
use flatwater_sql::class::{Class, Route};

#[derive(Debug, Default)]
pub(crate) struct Effects {
    /// The transaction made TEMP objects.
    made_temp: bool,
    /// The transaction changed the schema.
    pub(crate) defined: bool,
    /// Whether a write on the writer's thread may have written a virtual table, whose module then takes part in the commit.
    /// `None` until there is one.
    pub(crate) wrote_virtual: Option<bool>,
    /// A text was prepared that must not be grouped. What was known about it before may have been out of date.
    pub(crate) has_ungroupable: bool,
}

impl Effects {
    /// Records that a statement of this class is about to run, or ran.
    pub(crate) fn note(&mut self, class: &Class, writer: &mut WriterConnection) {
        self.made_temp |= class.makes_temp;
        self.defined |= class.defines;
        self.has_ungroupable |= !class.groupable;
        // It may be a VACUUM, which changes the cookie without reporting it.
        if class.route == Route::Write && !class.changes_rows {
            forget_schema(writer);
        }
    }

    /// Records that a closure of the user ran, which may have made TEMP objects. It may have changed the schema too,
    /// but none of our statements was prepared meanwhile.
    pub(crate) fn note_closure(&mut self, writer: &mut WriterConnection) {
        self.made_temp = true;
        forget_schema(writer);
        wrote_everything(writer);
    }

    /// Returns true if more than pages of the database's own tables is to be committed or undone.
    pub(crate) fn go_beyond_tables(&self) -> bool {
        self.made_temp || self.defined || self.wrote_virtual == Some(true)
    }

    /// Called when the transaction is over, however it ended. Drops its TEMP objects. If it changed the schema, its
    /// statements may have been prepared under a schema that was never committed, which no cookie would show: all of
    /// them are dropped.
    pub(crate) fn clean_up(self, writer: &mut WriterConnection, catalogue: &Catalogue) {
        let Some(connection) = &mut writer.connection else { return };
        if self.defined {
            connection.schema.seen.forget();
            connection.statements.clear(&mut connection.sqlite);
            catalogue.next_epoch();
        }
        if self.made_temp && drop_temp_objects(connection).is_err() {
            writer.replace();
        }
    }
}

/// Records that code ran of which nothing is known.
pub(crate) fn wrote_everything(writer: &mut WriterConnection) {
    if let Some(connection) = &mut writer.connection {
        connection.recording.wrote_everything();
    }
}
