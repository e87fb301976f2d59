//! Floor 3: the workers. Each owns its threads and connections; none knows another.

pub(crate) mod readers;
pub(crate) mod request;
pub(crate) mod writer;
