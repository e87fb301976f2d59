//! The workers. Each owns its threads and connections; none knows another. `request` and `session` are what
//! they and their callers share.

pub(crate) mod answer;
pub(crate) mod checkpoint;
pub(crate) mod listener;
pub(crate) mod live;
pub(crate) mod open_read;
pub(crate) mod outbox;
pub(crate) mod readers;
pub(crate) mod refusals;
pub(crate) mod request;
pub(crate) mod session;
pub(crate) mod take_over;
pub(crate) mod writer;
