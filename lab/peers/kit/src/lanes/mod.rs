//! Every lane, each in a small file of its own.

mod at_rest;
mod bound_values;
mod burst;
mod caller;
mod caller_polls;
mod chat;
mod chat_plan;
mod chat_tasks;
#[cfg(target_os = "linux")]
mod cold_keys;
mod feed;
mod flat_out;
mod functions;
mod group;
mod inserts;
mod json_rows;
mod large_results;
mod literals;
mod live;
mod long_queries;
mod long_reader;
mod loop_gap;
mod many;
mod memory;
mod noop;
mod payloads;
mod point_query;
mod query;
mod random_keys;
mod reopen;
mod selects;
mod shapes;
mod stream;
mod sustained;
mod tenants;
mod tenants_random;
mod transactions;
mod typed;

use std::pin::Pin;

use crate::Result;
use crate::lane::Lane;
use crate::measure::Measured;
use crate::peer::Peer;

/// A lane that runs, where several kinds of them stand in one list.
type Running = Pin<Box<dyn Future<Output = Result<Measured>> + Send>>;

pub(crate) fn all<P: Peer>() -> Vec<Lane> {
    let files = [
        inserts::lanes::<P>,
        group::lanes::<P>,
        literals::lanes::<P>,
        many::lanes::<P>,
        point_query::lanes::<P>,
        bound_values::lanes::<P>,
        functions::lanes::<P>,
        random_keys::lanes::<P>,
        #[cfg(target_os = "linux")]
        cold_keys::lanes::<P>,
        query::lanes::<P>,
        typed::lanes::<P>,
        stream::lanes::<P>,
        selects::lanes::<P>,
        shapes::lanes::<P>,
        json_rows::lanes::<P>,
        transactions::lanes::<P>,
        noop::lanes::<P>,
        chat::lanes::<P>,
        chat_tasks::lanes::<P>,
        feed::lanes::<P>,
        burst::lanes::<P>,
        flat_out::lanes::<P>,
        sustained::lanes::<P>,
        long_reader::lanes::<P>,
        reopen::lanes::<P>,
        caller::lanes::<P>,
        loop_gap::lanes::<P>,
        caller_polls::lanes::<P>,
        long_queries::lanes::<P>,
        large_results::lanes::<P>,
        memory::lanes::<P>,
        at_rest::lanes::<P>,
        tenants::lanes::<P>,
        tenants_random::lanes::<P>,
        live::lanes::<P>,
    ];
    files.into_iter().flat_map(|lanes| lanes()).collect()
}
