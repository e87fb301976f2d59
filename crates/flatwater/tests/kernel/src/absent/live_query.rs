//! No live queries: a part of one cannot be made, so that one without parts is all that could be asked for.

use std::convert::Infallible;
use std::sync::Arc;

use crate::connection::EngineConnection;
use flatwater_base::error::Result;
use flatwater_base::values::params::Params;
use flatwater_base::values::row::Rows;
use flatwater_sql::statement_info::StatementInfo;

pub(crate) type Parts<'a> = std::iter::Empty<(&'a Arc<StatementInfo>, &'a Params, Option<&'a Derived>)>;

pub(crate) struct LiveQuery(pub(crate) Box<[LivePart]>);

impl LiveQuery {
    pub(crate) fn parts<'a>(&'a self, _: &'a [Option<Derived>]) -> Parts<'a> {
        std::iter::empty()
    }
}

pub(crate) struct LivePart {
    pub(crate) text: Arc<StatementInfo>,
    pub(crate) params: Params,
    _never: Infallible,
}

#[derive(Clone)]
pub(crate) struct Derived {
    pub(crate) cookie: i64,
    never: Infallible,
}

impl Derived {
    pub(crate) fn finds_no_rows(&self) -> Option<Vec<Option<i64>>> {
        match self.never {}
    }
}

pub(crate) struct LiveRun {
    pub(crate) rows: Rows,
    pub(crate) derived: Derived,
    pub(crate) found: Vec<Option<i64>>,
}

pub(crate) fn run_live(_: &mut EngineConnection, _: Parts<'_>) -> Result<Vec<LiveRun>> {
    Ok(Vec::new())
}
