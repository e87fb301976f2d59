//! The data and the traffic of the lanes `chat` and those with tasks, with the answer each call must give.
//!
//! Owns: everything drawn at random, and the model that tells the answers if the calls are made one after another. Leaves out: asking a
//! peer.

use anyhow::Result;

use crate::record::{Sum, sum_of};
use crate::traffic::{Traffic, Zipf};
use crate::value::Value;

pub(super) const CREATE: [&str; 4] = [
    "CREATE TABLE users (id INTEGER PRIMARY KEY, name TEXT NOT NULL, avatar TEXT NOT NULL)",
    "CREATE TABLE conversations (id INTEGER PRIMARY KEY, last_at INTEGER NOT NULL)",
    "CREATE TABLE messages (id INTEGER PRIMARY KEY, conversation INTEGER NOT NULL, sender INTEGER NOT NULL, \
     body TEXT NOT NULL, sent_at INTEGER NOT NULL)",
    "CREATE INDEX messages_newest ON messages (conversation, sent_at)",
];
pub(super) const INSERT: &str = "INSERT INTO messages (id, conversation, sender, body, sent_at) VALUES (?, ?, ?, ?, ?)";
pub(super) const UPDATE: &str = "UPDATE conversations SET last_at = ? WHERE id = ?";
pub(super) const LAST: &str = "SELECT m.id, m.body, m.sent_at, u.name, u.avatar FROM messages m \
     JOIN users u ON u.id = m.sender WHERE m.conversation = ? ORDER BY m.sent_at DESC LIMIT 20";
pub(super) const USER: &str = "SELECT id, name, avatar FROM users WHERE id = ?";

pub(super) type Last = (i64, String, i64, String, String);
pub(super) type User = (i64, String, String);
pub(super) type Message = (i64, i64, i64, String, i64);

const USERS: usize = 500;
const CONVERSATIONS: usize = 100;
pub(super) const SHOWN: usize = 20;
pub(super) const BEGAN: i64 = 1_700_000_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Send,
    Update,
    Last,
    User,
}

/// The names of the kinds, in their order.
pub(super) const KINDS: [&str; 4] = ["send", "update", "last", "user"];

/// How many of a hundred calls are of each kind; the rest are users by id.
#[derive(Debug, Clone, Copy)]
pub(super) struct Mix {
    pub(super) send: usize,
    pub(super) update: usize,
    pub(super) last: usize,
}

/// One call in ten writes.
pub(super) const CHAT: Mix = Mix { send: 5, update: 5, last: 45 };
/// One call in fifty writes.
pub(super) const MOSTLY_READS: Mix = Mix { send: 1, update: 1, last: 49 };

impl Mix {
    fn kind(self, drawn: usize) -> Kind {
        let Self { send, update, last } = self;
        match drawn {
            drawn if drawn < send => Kind::Send,
            drawn if drawn < send + update => Kind::Update,
            drawn if drawn < send + update + last => Kind::Last,
            _ => Kind::User,
        }
    }
}

/// One call and what it must answer: the sum of its rows, or one row that a write changes.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Call {
    pub(super) kind: Kind,
    pub(super) params: Vec<Value<'static>>,
    pub(super) expected: Sum,
}

pub(super) struct Plan {
    seeded: usize,
    users: Vec<User>,
    /// What is in the tables when all calls are done.
    pub(super) messages: Vec<Message>,
    pub(super) conversations: Vec<(i64, i64)>,
    pub(super) calls: Vec<Call>,
}

impl Plan {
    pub(super) fn new(mix: Mix, messages: usize, calls: usize) -> Result<Self> {
        let (mut traffic, zipf) = (Traffic::default(), Zipf::new(CONVERSATIONS)?);
        let user = |id| (id, format!("User {id}"), format!("https://chat.example/avatars/{id}.png"));
        let mut plan = Self {
            seeded: messages,
            users: (1..=USERS as i64).map(user).collect(),
            messages: Vec::with_capacity(messages + calls),
            conversations: (1..=CONVERSATIONS as i64).map(|id| (id, BEGAN)).collect(),
            calls: Vec::with_capacity(calls),
        };
        let mut newest = vec![Vec::new(); CONVERSATIONS];
        for _ in 0..messages {
            let message = plan.message(&mut traffic, &zipf);
            newest[message.1 as usize - 1].push(plan.messages.len());
            plan.messages.push(message);
        }
        for _ in 0..calls {
            let call = plan.call(mix, &mut traffic, &zipf, &mut newest);
            plan.calls.push(call);
        }
        Ok(plan)
    }

    fn message(&self, traffic: &mut Traffic, zipf: &Zipf) -> Message {
        let id = self.messages.len() as i64 + 1;
        let conversation = traffic.place(zipf) as i64 + 1;
        let sender = traffic.below(USERS) as i64 + 1;
        let words = "so it goes ".repeat(traffic.below(12) + 1);
        (id, conversation, sender, format!("Message {id}: {words}"), BEGAN + id)
    }

    fn call(&mut self, mix: Mix, traffic: &mut Traffic, zipf: &Zipf, newest: &mut [Vec<usize>]) -> Call {
        let (mut params, mut expected) = (Vec::new(), Sum { rows: 1, cells: 0 });
        let kind = mix.kind(traffic.below(100));
        match kind {
            Kind::Send => {
                let message = self.message(traffic, zipf);
                params = parameters(&message);
                newest[message.1 as usize - 1].push(self.messages.len());
                self.messages.push(message);
            }
            Kind::Update => {
                let place = traffic.place(zipf);
                let (id, last_at) = &mut self.conversations[place];
                *last_at = BEGAN + self.messages.len() as i64;
                params.extend([(*last_at).into(), (*id).into()]);
            }
            Kind::Last => {
                let place = traffic.place(zipf);
                params.push((place as i64 + 1).into());
                let shown: Vec<Last> =
                    newest[place].iter().rev().take(SHOWN).map(|at| self.shown(&self.messages[*at])).collect();
                expected = sum_of(&shown);
            }
            Kind::User => {
                let user = &self.users[traffic.below(USERS)];
                params.push(user.0.into());
                expected = sum_of(std::slice::from_ref(user));
            }
        }
        Call { kind, params, expected }
    }

    fn shown(&self, (id, _, sender, body, sent_at): &Message) -> Last {
        let (_, name, avatar) = self.users[*sender as usize - 1].clone();
        (*id, body.clone(), *sent_at, name, avatar)
    }

    /// Statements and rows that fill the tables before the first call.
    pub(super) fn seed(&self) -> [(&'static str, Vec<Vec<Value<'static>>>); 3] {
        let user = |(id, name, avatar): &User| vec![(*id).into(), name.clone().into(), avatar.clone().into()];
        let conversation = |(id, _): &(i64, i64)| vec![(*id).into(), BEGAN.into()];
        [
            ("INSERT INTO users (id, name, avatar) VALUES (?, ?, ?)", self.users.iter().map(user).collect()),
            (
                "INSERT INTO conversations (id, last_at) VALUES (?, ?)",
                self.conversations.iter().map(conversation).collect(),
            ),
            (INSERT, self.messages[..self.seeded].iter().map(parameters).collect()),
        ]
    }
}

fn parameters((id, conversation, sender, body, sent_at): &Message) -> Vec<Value<'static>> {
    vec![(*id).into(), (*conversation).into(), (*sender).into(), body.clone().into(), (*sent_at).into()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_plans_are_the_same_call_by_call() {
        let (one, two) = (Plan::new(CHAT, 100, 500).unwrap(), Plan::new(CHAT, 100, 500).unwrap());
        assert_eq!(one.calls, two.calls);
        assert_eq!(one.messages, two.messages);
    }

    #[test]
    fn the_mix_is_about_as_described() {
        let plan = Plan::new(CHAT, 100, 10_000).unwrap();
        let share = |kind| plan.calls.iter().filter(|call| call.kind == kind).count();
        for (kind, expected) in [(Kind::Send, 500), (Kind::Update, 500), (Kind::Last, 4500), (Kind::User, 4500)] {
            assert!(share(kind).abs_diff(expected) < 200, "{kind:?}: {}", share(kind));
        }
        assert_eq!(plan.messages.len(), 100 + share(Kind::Send));
    }
}
