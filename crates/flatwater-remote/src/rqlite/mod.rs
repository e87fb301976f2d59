//! The rqlite cluster: its requests and answers, what is known after each, and asking again.
//!
//! `statement` and `answer` are the two directions of its JSON; `verdict` says what an answer means for the request; `nodes` says
//! who is asked next; `guard` makes a write apply once; `group` puts the writes of several callers into one request; `ask` puts these
//! together; `reads` and `writes` serve what callers ask.

pub(crate) mod answer;
pub(crate) mod ask;
pub(crate) mod group;
pub(crate) mod guard;
pub(crate) mod messages;
pub(crate) mod nodes;
pub(crate) mod reads;
pub(crate) mod request;
pub(crate) mod statement;
pub(crate) mod verdict;
pub(crate) mod writes;
