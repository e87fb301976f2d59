//! No large values that are read and written in parts: no use of one can be asked for.

use crate::connection::EngineConnection;
use flatwater_base::error::Result;

pub(crate) enum BlobUse {}

pub(crate) enum BlobUsed {}

impl BlobUse {
    pub(crate) fn only_reads(&self) -> bool {
        match *self {}
    }
}

pub(crate) fn use_blob(_: &mut EngineConnection, blob: &BlobUse) -> Result<BlobUsed> {
    match *blob {}
}
