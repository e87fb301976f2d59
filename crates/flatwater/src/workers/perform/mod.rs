//! What a work does on the writer's connection: in autocommit, or in an open transaction, which is served here.

pub(crate) mod autocommit;
pub(crate) mod frame;
pub(crate) mod statements;
pub(crate) mod transaction;
