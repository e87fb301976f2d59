//! rqlite: its requests, its answers, and what is known after each.
//!
//! `json` and `answer` are the two directions of its JSON; `verdict` says what an answer means for the request.

pub(crate) mod answer;
pub(crate) mod json;
pub(crate) mod verdict;
