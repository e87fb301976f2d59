//! Writes: one request after the other, each with the writes that waited meanwhile.
//!
//! Owns: the writes that wait, and their requests. Runs as one task on the thread of the connection to the cluster. Invariants: writes
//! are sent in the order in which they began; each is answered once, and applied once; a write whose caller left before it was
//! sent is not sent. Leaves out: what stands around the statements (`guard`), what a request contains (`grouped`).

use std::collections::VecDeque;
use std::pin::pin;
use std::rc::Rc;
use std::time::Instant;

use flatwater::Error;
use flatwater::bindings::server::{Asked, timeout};
use flatwater::calls::TimeoutEffect;
use tokio::sync::OwnedSemaphorePermit;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::task::spawn_local;

use super::group::{FULL_BYTES, Room};
use super::grouped::{Applied, Grouped, checked, nothing_to_do};
use super::guard::Writer;
use super::settle::{Attempts, Outcome, clean, too_late};
use crate::clock::seconds;
use crate::shared::Shared;

pub(crate) struct Writes {
    shared: Rc<Shared>,
    inbox: UnboundedReceiver<Asked>,
    waiting: VecDeque<Asked>,
    /// How many go together in the next requests, after one of them has failed beside the others.
    planned: VecDeque<usize>,
    room: Room,
    writer: Writer,
}

impl Writes {
    pub(crate) fn new(shared: Rc<Shared>, inbox: UnboundedReceiver<Asked>) -> Self {
        Self {
            shared,
            inbox,
            waiting: VecDeque::new(),
            planned: VecDeque::new(),
            room: Room::default(),
            writer: Writer::new(rand::random()),
        }
    }

    /// Serves writes until no more can come.
    pub(crate) async fn serve(mut self) {
        while self.wait().await {
            let _slot = self.slot().await;
            let members = self.take();
            self.run(members).await;
        }
    }

    /// Waits until no transaction of this client is open.
    async fn slot(&mut self) -> Option<OwnedSemaphorePermit> {
        if let Ok(slot) = self.shared.slot.clone().try_acquire_owned() {
            return Some(slot);
        }
        let mut slot = pin!(self.shared.slot.clone().acquire_owned());
        // When the first of those that wait is given up.
        let mut until = self.first_end();
        loop {
            let late = async {
                match until {
                    Some(until) => tokio::time::sleep_until(until.into()).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                slot = &mut slot => return slot.ok(),
                () = late => {
                    self.answer_late();
                    until = self.first_end();
                }
                Some(asked) = self.inbox.recv() => {
                    let end = self.shared.finishes_by(&asked);
                    until = Some(until.map_or(end, |until| until.min(end)));
                    self.waiting.push_back(asked);
                }
            }
        }
    }

    fn first_end(&self) -> Option<Instant> {
        self.waiting.iter().map(|asked| self.shared.finishes_by(asked)).min()
    }

    /// Answers the writes whose time is over.
    fn answer_late(&mut self) {
        let now = Instant::now();
        for asked in std::mem::take(&mut self.waiting) {
            if self.shared.finishes_by(&asked) > now {
                self.waiting.push_back(asked);
            } else if asked.starts() {
                asked.answer(Err(too_late("a transaction of this client was before it")));
            }
        }
    }

    /// Waits for a write. Returns false if no more can come.
    async fn wait(&mut self) -> bool {
        if self.waiting.is_empty() {
            self.planned.clear();
            match self.inbox.recv().await {
                Some(asked) => self.waiting.push_back(asked),
                None => return false,
            }
        }
        while let Ok(asked) = self.inbox.try_recv() {
            self.waiting.push_back(asked);
        }
        true
    }

    /// Takes the writes that go into the next request. One that cannot be sent is answered.
    fn take(&mut self) -> Vec<Asked> {
        let most = self.planned.pop_front().unwrap_or(self.room.members());
        let (mut members, mut length) = (Vec::new(), 0);
        while members.len() < most && length < FULL_BYTES {
            let Some(asked) = self.waiting.pop_front() else { break };
            // Its statements belong together, and are many.
            let is_alone = !asked.is_one();
            if is_alone && !members.is_empty() {
                self.waiting.push_front(asked);
                break;
            }
            if !asked.starts() {
                continue;
            }
            if self.shared.finishes_by(&asked) <= Instant::now() {
                asked.answer(Err(too_late("other writes were before it")));
                continue;
            }
            match checked(&asked, self.shared.cluster.dialect) {
                Ok(Some(bytes)) => length += bytes,
                Ok(None) => {
                    nothing_to_do(asked);
                    continue;
                }
                Err(error) => {
                    asked.answer(Err(error));
                    continue;
                }
            }
            members.push(asked);
            if is_alone {
                break;
            }
        }
        members
    }

    /// Sends the members in one request, and answers them. If one fails beside others, all of them wait again.
    async fn run(&mut self, members: Vec<Asked>) {
        let mut members: Vec<Option<Asked>> = members.into_iter().map(Some).collect();
        loop {
            members.retain(|member| member.as_ref().is_some_and(Asked::finishes));
            let Some(until) = members.iter().flatten().map(|member| self.shared.finishes_by(member)).max() else {
                return;
            };
            self.writer.next(rand::random());
            let dialect = self.shared.cluster.dialect;
            let (grouped, body) = Grouped::new(&self.writer, dialect, &members, seconds());
            // Nobody may wait for it any more.
            let attempts = Attempts { shared: &self.shared, writer: &self.writer, grouped: &grouped, until };
            let settled = attempts.settle(body);
            let Some(outcome) = while_in_time(&mut members, settled).await else { return };
            match outcome {
                Outcome::Applied(applied) => return self.answer(members, &grouped, applied),
                Outcome::Failed { member, .. } if members.len() > 1 => {
                    let before = members[..member].iter().flatten().count();
                    return self.wait_again(members, &[before, 1]);
                }
                Outcome::Undone(_) if members.len() > 1 => {
                    let each = vec![1; members.len()];
                    return self.wait_again(members, &each);
                }
                Outcome::Failed { at, failure, .. } => {
                    return members.into_iter().flatten().for_each(|member| {
                        let error = grouped.explain(failure.error(), at, &member);
                        member.answer(Err(error));
                    });
                }
                Outcome::Undone(error) | Outcome::Over(error) => return fail(members, &error),
                // Somebody else has the number of this writer.
                Outcome::Taken => self.writer = Writer::new(rand::random()),
                Outcome::Again => {}
            }
        }
    }

    fn answer(&mut self, members: Vec<Option<Asked>>, grouped: &Grouped, mut applied: Applied) {
        self.room.succeeded(members.len());
        for (number, member) in members.into_iter().enumerate() {
            if let Some(member) = member {
                let answer = grouped.answer(number, &member, &mut applied);
                member.answer(answer);
            }
        }
        if !self.shared.has_cleaned.replace(true) {
            let shared = self.shared.clone();
            spawn_local(async move { clean(&shared).await });
        }
    }

    /// Nothing was applied: the members are the first that wait, and as many as planned go together.
    fn wait_again(&mut self, members: Vec<Option<Asked>>, planned: &[usize]) {
        self.planned = planned.iter().copied().filter(|members| *members > 0).collect();
        self.room.failed();
        for member in members.into_iter().flatten().rev() {
            // One that was sent is finished, although its caller has left.
            if member.waits_again() || !member.is_left() {
                self.waiting.push_front(member);
            }
        }
    }
}

/// Waits for what becomes of the members, and answers those whose own time is over meanwhile. Returns `None` if no member is left.
async fn while_in_time<T>(members: &mut [Option<Asked>], work: impl Future<Output = T>) -> Option<T> {
    let mut work = pin!(work);
    loop {
        let next = members.iter().flatten().filter_map(Asked::deadline).min();
        let over = async {
            match next {
                Some(next) => tokio::time::sleep_until(next.into()).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            done = &mut work => return Some(done),
            () = over => {}
        }
        let now = Instant::now();
        for member in members.iter_mut() {
            if let Some(late) = member.take_if(|member| member.deadline().is_some_and(|deadline| deadline <= now)) {
                let message = "the deadline of the call passed while the server had its write";
                late.answer(Err(timeout(message.into(), TimeoutEffect::Unknown)));
            }
        }
        if members.iter().all(Option::is_none) {
            return None;
        }
    }
}

/// The members were not applied, or it is not known.
fn fail(members: Vec<Option<Asked>>, error: &Error) {
    members.into_iter().flatten().for_each(|member| member.answer(Err(error.clone())));
}
