//! Several reads of one point in time.
//!
//! Owns: the caller's side of a snapshot; its methods run on the caller's thread. Invariant: a snapshot that goes out
//! of scope ends, and gives its reader back. Leaves out: serving it, which the readers do, or the writer in a database
//! with one connection.

use std::ops::Deref;
use std::sync::Arc;

use crate::api::call::Call;
use crate::api::session::Session;
use crate::engine::dispatch::Caller;
use crate::error::{Error, Result};
use crate::queue::ticket::CallOptions;
use crate::workers::Answer;
use crate::workers::kept::SnapshotGuard;
use crate::workers::open_transaction::{Inside, TransactionGuard};
use crate::workers::work::Work;

/// One point in time of the database: all reads of it see the same state, whatever is committed meanwhile.
///
/// It holds a reader and its read transaction until it is dropped, for
/// [`Tuning::snapshot_age`](crate::options::Tuning::snapshot_age) at most, because it blocks a restart of the WAL. Its
/// operations are those of a [`Session`], without writes; they run one after the other. Several streams may be open at
/// once.
///
/// In a database with one connection ([`Stats::one_connection`](crate::stats::Stats::one_connection)) writes wait until the
/// snapshot ends, as for a transaction, and it ends if it is not used for
/// [`Options::transaction_idle`](crate::Options::transaction_idle).
#[must_use = "a snapshot ends when it is dropped"]
pub struct Snapshot {
    /// Dropped before the handle to the database.
    _guard: Guard,
    session: Session,
}

/// What ends the snapshot when it is dropped.
#[allow(dead_code, reason = "the drop of each is what counts")]
enum Guard {
    Reader(SnapshotGuard),
    Transaction(TransactionGuard),
}

impl Snapshot {
    fn new(caller: &Caller, answer: Answer) -> Result<Self> {
        let options = CallOptions { read_only: true, ..caller.options };
        let caller = Caller { options, ..caller.clone() };
        let (caller, guard) = match answer {
            Answer::Snapshot(guard) => (Caller { kept: Some(guard.at.clone()), ..caller }, Guard::Reader(guard)),
            answer => {
                let guard = answer.transaction()?;
                let inside = Arc::new(Inside { transaction: guard.0.clone(), savepoints: Vec::new() });
                (Caller { inside: Some(inside), ..caller }, Guard::Transaction(guard))
            }
        };
        Ok(Self { session: Session(caller), _guard: guard })
    }
}

/// Opens a snapshot.
pub(crate) fn begin(of: &Session) -> Call<Snapshot> {
    of.call("snapshot", Ok(Work::Snapshot), |answer, caller| {
        caller.map(|caller| Snapshot::new(caller, answer)).unwrap_or_else(|| Err(Error::closed()))
    })
}

impl Deref for Snapshot {
    type Target = Session;

    fn deref(&self) -> &Session {
        &self.session
    }
}
opaque!(Snapshot);
