//! live_*: live queries, for libraries that have them.
//!
//! Each is a file of its own. A live query delivers its result, and again whenever it changed. In all lanes but
//! `live_initial`, `live_churn` and `live_large` each is awaited by a task of its own, which notes when a result was there and touched.
//! What was delivered last must equal what the same query answers.

mod aggregates;
mod beside;
mod deliveries;
mod firsts;
mod foreign;
mod keyed;
mod large;
mod owners;
mod subscribers;
mod sync;
mod watch;
mod writers;

use anyhow::Result;

use crate::lane::{Lane, Trial};
use crate::measure::Measured;
use crate::peer::Peer;

pub(super) fn lanes<P: Peer>() -> Vec<Lane> {
    if !P::HAS_LIVE {
        return Vec::new();
    }
    let files = [
        firsts::lanes::<P>,
        deliveries::lanes::<P>,
        keyed::lanes::<P>,
        owners::lanes::<P>,
        writers::lanes::<P>,
        sync::lanes::<P>,
        beside::lanes::<P>,
        subscribers::lanes::<P>,
        foreign::lanes::<P>,
        aggregates::lanes::<P>,
        large::lanes::<P>,
    ];
    files.into_iter().flat_map(|lanes| lanes()).map(Lane::tasks).collect()
}

/// A focused lane of this family.
fn lane<F>(
    name: impl Into<String>,
    about: impl Into<String>,
    ops_unit: &'static str,
    run: impl FnOnce(Trial) -> F + 'static,
) -> Lane
where
    F: Future<Output = Result<Measured>> + Send + 'static,
{
    Lane::new("live", name, about, ops_unit, run)
}
