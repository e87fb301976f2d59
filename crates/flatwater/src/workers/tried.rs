//! What became of a call that was tried on its caller's thread, on a connection that may write.
//!
//! Owns: the type that says it. Leaves out: trying it (`workers::writer`), and what the caller makes of it (`engine::try_inline`).

use crate::error::Result;
use crate::inline::outcome::{Held, InlineRun};
use crate::queue::reply::Reply;
use crate::workers::Answer;

pub(crate) enum Tried {
    Ran(InlineRun<Result<Answer>>),
    /// It failed in a way that may have come from its commit, after this time. A worker finds out what became of it, and
    /// answers, whatever the caller does. No other write runs before that.
    Unsettled(Reply<Result<Answer>>, Held),
}
