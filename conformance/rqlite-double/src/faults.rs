//! What goes wrong with a request.
//!
//! Owns: the list of faults, and which one comes next: by a script, or by chance. Pure. Invariant: a seed gives the same faults each time.
//! Leaves out: making them happen (`serve`).

use std::collections::VecDeque;

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use serde::Deserialize;

/// A fault of a request to the leader.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Fault {
    /// Nothing goes wrong. In a script it lets a request pass.
    None,
    /// The connection ends, and nothing was executed.
    DropBefore,
    /// It is executed, and the connection ends without an answer.
    DropAfter,
    /// It is executed, and the connection ends in the middle of the answer.
    HalfAnAnswer,
    /// No answer comes, and nothing is executed.
    HangBefore,
    /// It is executed, and no answer comes.
    HangAfter,
    /// No answer comes; it is executed after a while, when the client may have sent it again.
    ExecutedLate,
    /// No answer comes; it is executed when an order releases it.
    Held,
    /// It is executed when an order releases it, and answered then.
    Waits,
    /// Something on the way sends it twice. The answer is the second one.
    Twice,
    /// The leader is replaced while it commits; it was not executed.
    LostBefore,
    /// The same; it was executed.
    LostAfter,
    /// It was not executed, and the node says so.
    Transfer,
    /// There is no leader for a moment.
    NoLeader,
    /// The answer is not one of rqlite.
    Nonsense,
    /// The answer is empty.
    Nothing,
    /// It is executed, and its answer is status 500.
    ErrorAfter,
    /// Each node sends the client to the next.
    Circle,
    /// The answer does not end.
    Endless,
    /// The disk of the leader is full. The other nodes execute it.
    Full,
}

/// Those that come by chance. The others take as long as the client's patience.
const BY_CHANCE: &[Fault] = &[
    Fault::DropBefore,
    Fault::DropAfter,
    Fault::HalfAnAnswer,
    Fault::HangBefore,
    Fault::HangAfter,
    Fault::ExecutedLate,
    Fault::LostBefore,
    Fault::LostAfter,
    Fault::Transfer,
    Fault::NoLeader,
    Fault::Nonsense,
    Fault::Nothing,
    Fault::ErrorAfter,
    Fault::Circle,
    Fault::Twice,
];

#[derive(Default)]
pub(crate) struct Faults {
    script: VecDeque<Fault>,
    chance: Option<(StdRng, f64)>,
}

impl Faults {
    pub(crate) fn script(&mut self, faults: Vec<Fault>) {
        self.script.extend(faults);
    }

    pub(crate) fn clear(&mut self) {
        self.script.clear();
    }

    /// Each request has a fault with this probability. 0 ends it.
    pub(crate) fn by_chance(&mut self, seed: u64, probability: f64) {
        self.chance = (probability > 0.0).then(|| (StdRng::seed_from_u64(seed), probability));
    }

    /// The fault of the next request. A script is for what a program asks, and not for what the client does by itself.
    pub(crate) fn next(&mut self, is_asked: bool) -> Fault {
        if let Some(fault) = self.script.pop_front_if(|_| is_asked) {
            return fault;
        }
        let Some((random, probability)) = &mut self.chance else { return Fault::None };
        match random.random_bool(*probability) {
            true => BY_CHANCE[random.random_range(0..BY_CHANCE.len())],
            false => Fault::None,
        }
    }
}
