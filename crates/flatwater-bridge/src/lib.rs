//! What the front ends of Flatwater in other languages share: replies of many calls with one wake of an event loop,
//! options by name, the classes of errors, what hints name in each language, hints for names that are nearly right, and standard
//! types.
//!
//! Pure Rust: no interpreter, no unsafe code, no thread of its own. The design is in `docs/design/bridge.md`.

#![forbid(unsafe_code)]

mod counters;
mod decimals;
mod errors;
mod flat;
mod forms;
mod inbox;
mod meaning;
mod nearest_name;
mod opened;
mod options;
mod slice;
mod spelling;
mod tokens;

pub use counters::{Counter, counters};
pub use decimals::decimal_to_store;
pub use errors::{Class, camel, class, hint, spelled};
pub use flat::{Flat, Refused, Text};
pub use forms::{Form, Integers, exact};
pub use inbox::{Inbox, waker};
pub use meaning::{Meaning, Meant, Types, unreadable, words};
pub use nearest_name::{nearest, unknown};
pub use opened::Opened;
pub use options::{DURATIONS, Given, OPTIONS, TUNING, set};
pub use slice::Slice;
pub use spelling::Language;
pub use tokens::Tokens;
