//! The traffic of a chat service: the requests of every task, and the latency of each answer.
//!
//! Owns: the shares of the operations, the schedule of each task, which is the same for both sides, and the record of
//! latencies. Leaves out: the sides that serve the requests.

use std::sync::Arc;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

use crate::side::{self, CONVERSATIONS, MESSAGES, NewMessage, Result, Side, Writes};

pub(crate) const TASKS: u64 = 100;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operation {
    LastMessages,
    User,
    NewMessage,
    Update,
}

/// The operations and their shares in percent.
pub(crate) const SHARES: [(Operation, u32); 4] =
    [(Operation::LastMessages, 45), (Operation::User, 45), (Operation::NewMessage, 5), (Operation::Update, 5)];

impl Operation {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::LastMessages => "last 20 messages",
            Self::User => "user by key",
            Self::NewMessage => "new message",
            Self::Update => "update",
        }
    }

    fn drawn(random: &mut SmallRng) -> Self {
        let mut rest = random.random_range(0..100);
        for (operation, share) in SHARES {
            if rest < share {
                return operation;
            }
            rest -= share;
        }
        Self::Update
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Request {
    LastMessages(i64),
    User(i64),
    NewMessage(NewMessage),
    Update { conversation: i64, at: i64 },
}

impl Request {
    fn operation(&self) -> Operation {
        match self {
            Self::LastMessages(_) => Operation::LastMessages,
            Self::User(_) => Operation::User,
            Self::NewMessage(_) => Operation::NewMessage,
            Self::Update { .. } => Operation::Update,
        }
    }
}

/// The requests of one task during one round, without end.
struct Schedule {
    random: SmallRng,
    /// The clock of the service, counted in requests.
    at: i64,
}

impl Schedule {
    fn new(round: u32, task: u64) -> Self {
        Self { random: SmallRng::seed_from_u64(u64::from(round) * TASKS + task), at: MESSAGES }
    }

    fn next(&mut self) -> Request {
        let random = &mut self.random;
        self.at += 1;
        let operation = Operation::drawn(random);
        let conversation = random.random_range(1..=CONVERSATIONS);
        match operation {
            Operation::LastMessages => Request::LastMessages(conversation),
            Operation::User => Request::User(side::user_id(random)),
            Operation::NewMessage => {
                Request::NewMessage((conversation, side::user_id(random), self.at, side::body(random)))
            }
            Operation::Update => Request::Update { conversation, at: self.at },
        }
    }
}

/// The latencies in nanoseconds, by operation, and the time over which they were measured.
pub(crate) struct Record {
    latencies: [Histogram<u64>; SHARES.len()],
    pub(crate) elapsed: Duration,
}

const LONGEST_NS: u64 = 3_600_000_000_000;

impl Record {
    pub(crate) fn new() -> Self {
        Self { latencies: std::array::from_fn(|_| histogram()), elapsed: Duration::ZERO }
    }

    fn answered(&mut self, operation: Operation, latency: Duration) {
        let ns = u64::try_from(latency.as_nanos()).unwrap_or(LONGEST_NS);
        self.latencies[operation as usize].saturating_record(ns.max(1));
    }

    pub(crate) fn add(&mut self, other: &Self) {
        for (all, more) in self.latencies.iter_mut().zip(&other.latencies) {
            *all += more;
        }
        self.elapsed += other.elapsed;
    }

    pub(crate) fn of(&self, operation: Operation) -> &Histogram<u64> {
        &self.latencies[operation as usize]
    }

    /// Returns the latencies of all operations together.
    pub(crate) fn all(&self) -> Histogram<u64> {
        let mut all = histogram();
        self.latencies.iter().for_each(|latencies| all += latencies);
        all
    }

    pub(crate) fn writes(&self) -> Writes {
        Writes { messages: self.of(Operation::NewMessage).len(), updates: self.of(Operation::Update).len() }
    }
}

/// Returns a histogram of nanoseconds.
pub(crate) fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, LONGEST_NS, 3).expect("the bounds are valid")
}

/// Lets all tasks send requests to `side` for `time`.
pub(crate) async fn round<S: Side>(side: &Arc<S>, round: u32, time: Duration) -> Result<Record> {
    let began = Instant::now();
    let tasks: Vec<_> =
        (0..TASKS).map(|task| tokio::spawn(ask(side.clone(), Schedule::new(round, task), began + time))).collect();
    let mut answers = Vec::new();
    for task in tasks {
        answers.push(task.await??);
    }
    let mut record = Record { elapsed: began.elapsed(), ..Record::new() };
    for (operation, latency) in answers.into_iter().flatten() {
        record.answered(operation, latency);
    }
    Ok(record)
}

async fn ask<S: Side>(side: Arc<S>, mut schedule: Schedule, end: Instant) -> Result<Vec<(Operation, Duration)>> {
    let mut answers = Vec::new();
    while Instant::now() < end {
        let request = schedule.next();
        let operation = request.operation();
        let began = Instant::now();
        match request {
            Request::LastMessages(conversation) => {
                let messages = side.last_messages(conversation).await?;
                if messages.len() != 20 {
                    return Err(format!("{}: conversation {conversation} is too short", S::NAME).into());
                }
            }
            Request::User(id) => {
                side.user(id).await?.ok_or_else(|| format!("{}: user {id} is missing", S::NAME))?;
            }
            Request::NewMessage(message) => side.new_message(message).await?,
            Request::Update { conversation, at } => side.update(conversation, at).await?,
        }
        answers.push((operation, began.elapsed()));
    }
    Ok(answers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shares_are_complete_and_the_schedule_keeps_them() {
        assert_eq!(SHARES.iter().map(|(_, share)| share).sum::<u32>(), 100);
        let mut schedule = Schedule::new(0, 0);
        let drawn: Vec<Operation> = (0..100_000).map(|_| schedule.next().operation()).collect();
        for (operation, share) in SHARES {
            let count = drawn.iter().filter(|drawn| **drawn == operation).count() as i64;
            assert!((count - i64::from(share) * 1000).abs() < 500, "{} came {count} times", operation.name());
        }
    }

    #[test]
    fn a_task_asks_for_the_same_every_time_and_no_two_tasks_or_rounds_are_alike() {
        let requests = |round, task| {
            let mut schedule = Schedule::new(round, task);
            (0..100).map(|_| schedule.next()).collect::<Vec<_>>()
        };
        assert_eq!(requests(1, 7), requests(1, 7));
        assert_ne!(requests(1, 7), requests(1, 8));
        assert_ne!(requests(1, 7), requests(2, 7));
    }

    #[test]
    fn records_add_up() {
        let mut sum = Record::new();
        for (operation, times) in [(Operation::NewMessage, 3), (Operation::Update, 2), (Operation::User, 1)] {
            let mut record = Record { elapsed: Duration::from_secs(1), ..Record::new() };
            (0..times).for_each(|_| record.answered(operation, Duration::from_millis(1)));
            sum.add(&record);
        }
        assert_eq!(sum.writes(), Writes { messages: 3, updates: 2 });
        assert_eq!((sum.all().len(), sum.elapsed), (6, Duration::from_secs(3)));
    }
}
