//! What the statements of one transaction did that must be put right when it is over.
//!
//! Owns: noting it statement by statement, and putting it right. Belongs to the transaction, autocommit included, and not to
//! the connection. Runs on the thread that holds the slot. Leaves out: the schema as it is seen at the next use (`sql::seen`).

use super::connection::WriterConnection;
use crate::sql::catalogue::Catalogue;
use crate::sql::class::{Class, Route};

#[derive(Debug, Default)]
pub(super) struct Effects {
    /// TEMP objects were made.
    made_temp: bool,
    /// The schema was changed.
    pub(super) defined: bool,
    /// A text was met that must not be a member of a group. What was known of it before it was prepared again may have been
    /// out of date.
    pub(super) met_alone: bool,
}

impl Effects {
    /// A statement of this class is about to run, or ran.
    pub(super) fn note(&mut self, class: &Class, writer: &mut WriterConnection) {
        self.made_temp |= class.makes_temp;
        self.defined |= class.defines;
        self.met_alone |= !class.groupable;
        // It may be a VACUUM, which changes the cookie and tells nobody.
        if class.route == Route::Write && !class.changes_rows {
            writer.forget_schema();
        }
    }

    /// A closure of the user may have made TEMP objects. It may have changed the schema too, but no statement of ours was
    /// prepared meanwhile.
    pub(super) fn note_closure(&mut self, writer: &mut WriterConnection) {
        self.made_temp = true;
        writer.forget_schema();
    }

    /// The transaction is over, whichever way. Its TEMP objects end with it. If it changed the schema, what was learnt
    /// in it may have been learnt under one that was never committed, and no cookie would tell.
    pub(super) fn put_right(self, writer: &mut WriterConnection, catalogue: &Catalogue) {
        let Some(connection) = &mut writer.connection else { return };
        if self.defined {
            connection.seen.forget();
            connection.statements.clear(&mut connection.sqlite);
            catalogue.next_epoch();
        }
        if self.made_temp && connection.drop_temp_objects().is_err() {
            writer.replace();
        }
    }
}
