//! No copies of a database, and no connection that is lent as a whole: none can be asked for.

pub(crate) mod copy {
    use std::sync::Arc;

    use flatwater_sqlite::Interrupt;

    use crate::connection::EngineConnection;
    use crate::options::Options;
    use flatwater_base::error::Result;

    pub(crate) enum Copy {}

    pub(crate) fn copy(
        _: &mut EngineConnection,
        _: &Options,
        form: &Copy,
        _: &Arc<dyn Interrupt>,
    ) -> Result<Option<Vec<u8>>> {
        match *form {}
    }
}
