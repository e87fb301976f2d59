//! Databases whose threads take all places of the process where a thread may wait for more work (docs/design/parking.md).
//!
//! A thread without a place ends as soon as it has nothing to do, so each request to any other database starts one.

use flatwater::options::Inline;
use flatwater::{Database, Error, Options};

/// Places for each processor and at least, as in Flatwater, and some more of these databases than there are places.
const PER_CORE: usize = 4;
const LEAST: usize = 16;
const MORE: usize = 4;

pub(super) struct Places(Vec<Database>);

impl Places {
    /// Takes all places. They stay taken for as long as an idle thread waits, which is longer than a case.
    pub(super) async fn take() -> Result<Self, Error> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let mut all = Vec::new();
        for _ in 0..(cores * PER_CORE).max(LEAST) + MORE {
            let db = Options::new(":memory:").tuning(|t| t.inline(Inline::Never)).open().await?;
            db.execute_script("CREATE TABLE t (a)").await?;
            all.push(db);
        }
        Ok(Self(all))
    }

    pub(super) async fn give_back(self) -> Result<(), Error> {
        for db in self.0 {
            db.close().await?;
        }
        Ok(())
    }
}
