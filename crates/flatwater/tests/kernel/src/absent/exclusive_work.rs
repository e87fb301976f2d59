//! No work that has the writer's connection for itself: closures, migrations, VACUUM, copies, dumps.

use std::sync::Arc;

use crate::queue::ticket::Ticket;
use crate::workers::Answer;
use crate::workers::work::Exclusive;
use crate::workers::writer::WriterShared;
use crate::workers::writer::writer_connection::WriterConnection;
use flatwater_base::error::{Error, ErrorCode, Result};

fn absent() -> Error {
    Error::new(ErrorCode::Unsupported, "the kernel alone does not have this")
}

pub(crate) fn run_exclusive(
    _: &mut WriterConnection,
    _: &WriterShared,
    _: Exclusive,
    _: &Arc<Ticket>,
) -> Result<Answer> {
    Err(absent())
}

pub(crate) mod closures {
    use super::{Answer, Arc, Result, Ticket, WriterConnection, WriterShared, absent};
    use crate::workers::user_closures::ReadClosure;

    pub(crate) fn read_with(
        _: &mut WriterConnection,
        _: &WriterShared,
        _: ReadClosure,
        _: &Arc<Ticket>,
    ) -> Result<Answer> {
        Err(absent())
    }
}

pub(crate) mod import_script {
    use super::{Answer, Arc, Result, Ticket, WriterConnection, WriterShared, absent};
    use flatwater_sql::statement_info::StatementInfo;
    use flatwater_sql::text::Dump;

    pub(crate) fn load(
        _: &mut WriterConnection,
        _: &WriterShared,
        _: &Arc<StatementInfo>,
        _: Dump,
        _: &Arc<Ticket>,
    ) -> Result<Answer> {
        Err(absent())
    }
}

pub(crate) mod maintenance {
    use super::{Answer, Arc, Result, Ticket, WriterConnection, WriterShared};
    use crate::connection::exclusive::copy::Copy;

    pub(crate) fn backup(_: &mut WriterConnection, _: &WriterShared, form: &Copy, _: &Arc<Ticket>) -> Result<Answer> {
        match *form {}
    }
}
