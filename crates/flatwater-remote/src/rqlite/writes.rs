//! Writes: one request after the other, each with the writes that waited meanwhile.
//!
//! Owns: the writes that wait, and their requests. Runs as one task on the thread of the connection to the cluster. Invariants: writes
//! are sent in the order in which they began; each is answered once, and applied once; a write whose caller left before it was
//! sent is not sent. Leaves out: what stands around the statements (`guard`), what a request contains (`request`).

use std::collections::VecDeque;
use std::pin::pin;
use std::rc::Rc;
use std::time::Instant;

use flatwater::bindings::server::{Asked, error, sqlite_error, timeout};
use flatwater::calls::TimeoutEffect;
use flatwater::{Error, ErrorKind, Result};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::task::spawn_local;

use super::answer::StatementResult;
use super::ask::{Known, Request, To};
use super::group::{FULL_BYTES, Room};
use super::guard::{CLEAN, KEPT_SECONDS, SCHEMA, Writer, is_without_tables, was_applied};
use super::messages::code_of;
use super::nodes::pause;
use super::reads::no_result;
use super::request::{Applied, Grouped, checked, nothing_to_do};
use super::statement::Statements;
use crate::clock::seconds;
use crate::thread::Shared;

/// Not `/db/request`: there a statement that cannot be prepared does not undo the others, in versions up to 10.2.7.
const PATH: &str = "/db/execute?transaction&blob_array&redirect";
/// Each statement of it may be executed again.
const OWN_PATH: &str = "/db/execute?transaction&redirect";
const RECORDED_PATH: &str = "/db/query?redirect&level=strong";

pub(crate) struct Writes {
    shared: Rc<Shared>,
    inbox: UnboundedReceiver<Asked>,
    waiting: VecDeque<Asked>,
    /// How many go together in the next requests, after one of them has failed beside the others.
    planned: VecDeque<usize>,
    room: Room,
    writer: Writer,
    has_cleaned: bool,
}

/// What became of a request, for its members.
enum Outcome {
    Applied(Applied),
    /// Nothing was applied: the statement at this place failed, of this member.
    Failed {
        member: usize,
        at: usize,
        message: String,
    },
    /// Nothing was applied, and it is not known which member is to blame.
    Undone(Error),
    WithoutTables,
    /// The guard has refused it.
    Taken,
    /// It was not applied, and never will be. The members are sent in another request.
    Again,
    /// Its time is over, and nothing was applied, or it is not known whether it was.
    Over(Error),
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
            has_cleaned: false,
        }
    }

    /// Serves writes until no more can come.
    pub(crate) async fn serve(mut self) {
        while self.wait().await {
            let members = self.take();
            self.run(members).await;
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
            if self.shared.ends(&asked) <= Instant::now() {
                asked.answer(Err(too_late("other writes were before it")));
                continue;
            }
            match checked(&asked) {
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
            let Some(until) = members.iter().flatten().map(|member| self.shared.ends(member)).max() else { return };
            self.writer.next(rand::random());
            let grouped = Grouped::new(&self.writer, &members, seconds());
            // Nobody may wait for it any more.
            let settled = self.settle(&grouped, until);
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
                Outcome::Failed { at, message, .. } => {
                    return members.into_iter().flatten().for_each(|member| {
                        let error = grouped.explain(failure(&message), at, &member);
                        member.answer(Err(error));
                    });
                }
                Outcome::Undone(error) | Outcome::Over(error) => return fail(members, &error),
                // Somebody else has the number of this writer.
                Outcome::Taken => self.writer = Writer::new(rand::random()),
                Outcome::WithoutTables | Outcome::Again => {}
            }
        }
    }

    /// Sends the request until it is known what became of it. After an attempt of which nothing is known the database is asked first:
    /// a long commit may have ended meanwhile, and the answer to a question does not take as long.
    async fn settle(&self, grouped: &Grouped, until: Instant) -> Outcome {
        let body = grouped.body.clone();
        let request = Request { path: PATH.into(), body, to: To::Leader, repeats: false, until };
        let (mut attempts, mut may_be_second) = (0, false);
        loop {
            let known = self.shared.cluster.ask(&request).await;
            let (outcome, why) = match self.outcome(grouped, known) {
                Ok(outcome) => (Some(outcome), String::new()),
                Err(why) => (None, why),
            };
            let why = match outcome {
                Some(Outcome::Applied(applied)) => return Outcome::Applied(applied),
                // Also the first attempt may be one: something on the way has sent it twice.
                Some(Outcome::Taken) => match self.recorded(grouped, until).await {
                    Ok(Some(applied)) => return Outcome::Applied(applied),
                    Ok(None) if !may_be_second => return Outcome::Taken,
                    // It was ended, and that answer was lost.
                    Ok(None) => return Outcome::Again,
                    Err(error) => error.message().to_owned(),
                },
                Some(Outcome::WithoutTables) => match self.create(grouped, may_be_second, until).await {
                    Ok(Some(applied)) => return Outcome::Applied(applied),
                    Ok(None) => return Outcome::Again,
                    Err(error) if !may_be_second => return Outcome::Undone(error),
                    Err(error) => error.message().to_owned(),
                },
                Some(outcome) if !may_be_second => return outcome,
                Some(outcome) => match self.end(grouped, until).await {
                    Ok(Some(applied)) => return Outcome::Applied(applied),
                    Ok(None) => return outcome,
                    Err(error) => error.message().to_owned(),
                },
                None => why,
            };
            may_be_second = true;
            if let Ok(Some(applied)) = self.recorded(grouped, until).await {
                return Outcome::Applied(applied);
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Outcome::Over(unknown(&why));
            }
            tokio::time::sleep(pause(attempts, rand::random()).min(left)).await;
            attempts += 1;
        }
    }

    /// Creates the tables, after which the members are sent in another request.
    async fn create(&self, grouped: &Grouped, may_be_second: bool, until: Instant) -> Result<Option<Applied>> {
        own(&self.shared, SCHEMA, &[], until).await?;
        if may_be_second { self.end(grouped, until).await } else { Ok(None) }
    }

    /// Ends the request, of which an attempt may be under way: afterwards it was applied, or it never will be. Without this, an attempt
    /// that is late could be applied beside what is sent instead:
    ///
    /// | this client | the server |
    /// |---|---|
    /// | sends request 7, gets no answer | has it in a buffer |
    /// | sends request 7 again: a member fails | undoes it |
    /// | sends the other members as request 8 | applies request 7, of the buffer, then request 8 |
    async fn end(&self, grouped: &Grouped, until: Instant) -> Result<Option<Applied>> {
        let body = self.writer.begin(seconds()).finish();
        let request = Request { path: PATH.into(), body, to: To::Leader, repeats: true, until };
        match self.shared.cluster.ask(&request).await {
            Known::Results(results) => match results.last() {
                Some(StatementResult::Failed(message)) if !was_applied(message) => Err(failure(message)),
                _ => self.recorded(grouped, until).await,
            },
            Known::Refused(error) => Err(error),
            Known::Undone(message) => Err(failure(&message)),
            Known::TooLate(why) | Known::Unknown(why) => Err(too_late(&why)),
        }
    }

    /// Returns what an attempt came to, or why nothing is known of it.
    fn outcome(&self, grouped: &Grouped, known: Known) -> Result<Outcome, String> {
        let mut results = match known {
            Known::Results(results) => results,
            Known::Refused(error) => return Ok(Outcome::Undone(error)),
            Known::Undone(message) => return Ok(Outcome::Undone(failure(&message))),
            Known::TooLate(why) => return Ok(Outcome::Over(too_late(&why))),
            Known::Unknown(why) => return Err(why),
        };
        if let Some(StatementResult::Failed(message)) = results.last() {
            let at = results.len() - 1;
            return Ok(match grouped.failed(&results) {
                None if at == 0 && was_applied(message) => Outcome::Taken,
                None if is_without_tables(message) => Outcome::WithoutTables,
                None => Outcome::Undone(failure(message)),
                Some(member) => Outcome::Failed { member, at, message: message.clone() },
            });
        }
        let nonsense = || "the server's answer does not fit the request".to_owned();
        // A list of which one has failed ends there, and all of it is undone.
        if results.iter().any(|result| matches!(result, StatementResult::Failed(_))) {
            return Err(nonsense());
        }
        let Some(StatementResult::Rows { values, .. }) = results.pop() else { return Err(nonsense()) };
        let recorded = self.writer.results(&values).ok_or_else(nonsense)?;
        Applied::new(recorded, Some(results), grouped.results).map(Outcome::Applied).ok_or_else(nonsense)
    }

    /// Asks for the results of the request. `None`: it is not applied, yet.
    async fn recorded(&self, grouped: &Grouped, until: Instant) -> Result<Option<Applied>> {
        let body = self.writer.question(grouped.results).finish();
        let request = Request { path: RECORDED_PATH.into(), body, to: To::Leader, repeats: true, until };
        match self.shared.cluster.ask(&request).await {
            Known::Results(mut results) => match results.pop() {
                Some(StatementResult::Rows { values, .. }) => {
                    let recorded = self.writer.results(&values).ok_or_else(no_result)?;
                    Ok(Applied::new(recorded, None, grouped.results))
                }
                Some(StatementResult::Failed(message)) if is_without_tables(&message) => Ok(None),
                Some(StatementResult::Failed(message)) => Err(failure(&message)),
                _ => Err(no_result()),
            },
            Known::Refused(error) => Err(error),
            Known::Undone(message) => Err(failure(&message)),
            Known::TooLate(why) | Known::Unknown(why) => Err(too_late(&why)),
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
        if !self.has_cleaned {
            self.has_cleaned = true;
            spawn_local(clean(self.shared.clone()));
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

/// Removes what other clients have left. If it fails, the next client does it.
async fn clean(shared: Rc<Shared>) {
    let until = Instant::now() + shared.options.timeout;
    let _ = own(&shared, CLEAN, &[seconds() - KEPT_SECONDS], until).await;
}

/// Runs statements of ours, which may be executed again.
async fn own(shared: &Shared, all: &[&str], values: &[i64], until: Instant) -> Result<()> {
    let mut statements = Statements::default();
    all.iter().for_each(|sql| statements.own(sql, values));
    let request = Request { path: OWN_PATH.into(), body: statements.finish(), to: To::Leader, repeats: true, until };
    match shared.cluster.ask(&request).await {
        Known::Results(results) => match results.last() {
            Some(StatementResult::Failed(message)) => Err(failure(message)),
            _ => Ok(()),
        },
        Known::Refused(error) => Err(error),
        Known::Undone(message) => Err(failure(&message)),
        Known::TooLate(why) | Known::Unknown(why) => Err(too_late(&why)),
    }
}

/// The members were not applied, or it is not known.
fn fail(members: Vec<Option<Asked>>, error: &Error) {
    members.into_iter().flatten().for_each(|member| member.answer(Err(error.clone())));
}

fn failure(message: &str) -> Error {
    sqlite_error(code_of(message), message)
}

fn too_late(why: &str) -> Error {
    timeout(format!("the time of the call was over, and nothing was written: {why}"), TimeoutEffect::No)
}

fn unknown(why: &str) -> Error {
    let message = format!("it is not known whether the write was applied: {why}");
    error(
        ErrorKind::CommitUnknown,
        message,
        "when the cluster answers again, write something through this session, and then read what it writes",
    )
}
