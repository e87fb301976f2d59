//! Every lane, each in a small file of its own.

mod group;
mod inserts;
mod noop;
mod point_query;
mod query;

use crate::lane::Lane;
use crate::peer::Peer;

pub(crate) fn all<P: Peer>() -> Vec<Lane> {
    let files = [
        inserts::lanes::<P>,
        point_query::lanes::<P>,
        query::lanes::<P>,
        group::lanes::<P>,
        noop::lanes::<P>,
    ];
    files.into_iter().flat_map(|lanes| lanes()).collect()
}
