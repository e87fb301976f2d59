//! What the lanes of 8 KiB rows share: their table, their rows, and the check of what was written.

use anyhow::{Result, ensure};

use crate::peer::{Peer, Table};

pub(super) const BLOBS: &str = "CREATE TABLE blobs (id INTEGER PRIMARY KEY, payload BLOB NOT NULL)";
pub(super) const INSERT: &str = "INSERT INTO blobs (id, payload) VALUES (?, ?)";
pub(super) const SELECT: &str = "SELECT id, payload FROM blobs WHERE id = ?";
pub(super) const BYTES: usize = 8192;

/// The payload of one row after another, in one buffer.
pub(super) struct Payload(Vec<u8>);

impl Payload {
    pub(super) fn new() -> Self {
        Self((0..BYTES).map(|at| (at % 251) as u8).collect())
    }

    /// That of row `id`.
    pub(super) fn of(&mut self, id: i64) -> &[u8] {
        self.0[..8].copy_from_slice(&id.to_be_bytes());
        &self.0
    }
}

/// The rows `1..=count` are there, none of them shorter, and about 50 of them byte by byte as written.
pub(super) async fn expect<P: Peer>(peer: &P, count: i64) -> Result<()> {
    let totals = "SELECT count(*), sum(length(payload)), max(id) FROM blobs";
    let found = peer.query::<(i64, i64, i64)>(totals, &[]).await?.records()?;
    let expected = (count, count * BYTES as i64, count);
    ensure!(found == [expected], "rows, bytes and the last id are {found:?}, expected {expected:?}");
    let mut payload = Payload::new();
    for id in (1..=count).step_by(usize::try_from(count / 50 + 1)?) {
        let row = peer.query::<(i64, Vec<u8>)>(SELECT, &[id.into()]).await?.records()?;
        ensure!(row == [(id, payload.of(id).to_vec())], "row {id} is not what was written");
    }
    Ok(())
}
