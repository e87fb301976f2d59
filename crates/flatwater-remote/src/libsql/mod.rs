//! libSQL servers, over Hrana (<https://github.com/tursodatabase/libsql/blob/main/docs/HRANA_3_SPEC.md>): requests, answers, and
//! what is known after each.
//!
//! `json` and `answer` are the two directions of its JSON; `verdict` says what an answer means for the request; `stream` is a
//! connection of the server that is kept between requests.

pub(crate) mod answer;
pub(crate) mod cursor;
pub(crate) mod json;
pub(crate) mod stream;
pub(crate) mod verdict;
