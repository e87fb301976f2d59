//! Writes: one request after the other, each with the writes that waited meanwhile.
//!
//! Owns: the writes that wait, and their requests. Runs as one task on the thread of the connection to the cluster. Invariants: writes
//! are sent in the order in which they began; each is answered once, and applied once; a write whose caller left before it was
//! sent is not sent. Leaves out: what stands around the statements (`guard`), what a request contains (`request`).

use std::collections::VecDeque;
use std::pin::pin;
use std::rc::Rc;
use std::time::{Instant, SystemTime};

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
use super::reads::no_result;
use super::request::{Applied, Grouped, bytes, check_all, is_alone, is_empty, nothing_to_do};
use super::statement::Statements;
use crate::thread::Shared;

const PATH: &str = "/db/request?transaction&blob_array&redirect";
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
    /// Nothing was applied: the statement of this member failed, the one at this place. `None`: it was one of ours.
    Failed(Option<usize>, usize, String),
    WithoutTables,
    /// The guard has refused it at its first attempt.
    AppliedBefore,
    /// It was not executed, or it is not known whether it was.
    Refused(Error),
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
            let is_alone = is_alone(&asked);
            if is_alone && !members.is_empty() {
                self.waiting.push_front(asked);
                break;
            }
            if !asked.starts() {
                continue;
            }
            if let Err(error) = check_all(&asked) {
                asked.answer(Err(error));
                continue;
            }
            if is_empty(&asked) {
                nothing_to_do(asked);
                continue;
            }
            length += bytes(&asked);
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
        let until = Instant::now() + self.shared.options.timeout;
        while !members.is_empty() {
            members.retain(|member| member.as_ref().is_some_and(Asked::finishes));
            self.writer.next();
            let grouped = Grouped::new(&self.writer, &members, seconds());
            // Nobody may wait for it any more.
            let Some(outcome) = while_in_time(&mut members, self.settle(&grouped, until)).await else { return };
            match outcome {
                Outcome::Applied(applied) => return self.answer(members, &grouped, applied),
                Outcome::Failed(Some(failed), ..) if members.len() > 1 => return self.wait_again(members, failed),
                Outcome::Failed(Some(_), at, message) => {
                    return members.into_iter().flatten().for_each(|member| {
                        let error = grouped.explain(failure(&message), at, &member);
                        member.answer(Err(error));
                    });
                }
                Outcome::Failed(None, _, message) => return fail(members, &failure(&message)),
                Outcome::Refused(error) => return fail(members, &error),
                Outcome::WithoutTables => {
                    if let Err(error) = own(&self.shared, SCHEMA, &[], until).await {
                        return fail(members, &error);
                    }
                }
                // Somebody else has the number of this writer.
                Outcome::AppliedBefore => self.writer = Writer::new(rand::random()),
            }
        }
    }

    /// Sends the request until it is known what became of it. After an attempt of which nothing is known the database is asked first:
    /// a long commit may have ended meanwhile, and the answer to a question does not take as long.
    async fn settle(&self, grouped: &Grouped, until: Instant) -> Outcome {
        let body = grouped.body.clone();
        let request = Request { path: PATH.into(), body, to: To::Leader, repeats: false, until };
        let mut may_be_second = false;
        loop {
            let why = match self.shared.cluster.ask(&request).await {
                Known::Results(results) => match self.outcome(grouped, results) {
                    Some(Outcome::Applied(applied)) => return Outcome::Applied(applied),
                    Some(outcome) if !may_be_second => return outcome,
                    Some(outcome) => match self.end(grouped, matches!(outcome, Outcome::WithoutTables), until).await {
                        Ok(Some(applied)) => return Outcome::Applied(applied),
                        Ok(None) => return outcome,
                        Err(why) => why,
                    },
                    None => "the server's answer does not fit the request".into(),
                },
                Known::Refused(error) if !may_be_second => return Outcome::Refused(error),
                Known::TooLate(why) if !may_be_second => return Outcome::Refused(too_late(&why)),
                Known::Refused(error) => error.message().to_owned(),
                Known::TooLate(why) | Known::Unknown(why) => why,
            };
            may_be_second = true;
            if let Ok(Some(applied)) = self.recorded(grouped, until).await {
                return Outcome::Applied(applied);
            }
            if Instant::now() >= until {
                return Outcome::Refused(unknown(&why));
            }
        }
    }

    /// Ends the request, of which an attempt may be under way: afterwards it was applied, or it never will be. Without this, an attempt
    /// that is late could be applied beside what is sent instead:
    ///
    /// | this client | the server |
    /// |---|---|
    /// | sends request 7, gets no answer | has it in a buffer |
    /// | sends request 7 again: a member fails | undoes it |
    /// | sends the other members as request 8 | applies request 7, of the buffer, then request 8 |
    async fn end(&self, grouped: &Grouped, creates: bool, until: Instant) -> Result<Option<Applied>, String> {
        let failed = |error: Error| error.message().to_owned();
        if creates {
            own(&self.shared, SCHEMA, &[], until).await.map_err(failed)?;
        }
        let body = self.writer.begin(seconds()).finish();
        let request = Request { path: PATH.into(), body, to: To::Leader, repeats: true, until };
        match self.shared.cluster.ask(&request).await {
            Known::Results(results) => match results.last() {
                Some(StatementResult::Failed(message)) if !was_applied(message) => Err(message.clone()),
                _ => self.recorded(grouped, until).await.map_err(failed),
            },
            Known::Refused(error) => Err(failed(error)),
            Known::TooLate(why) | Known::Unknown(why) => Err(why),
        }
    }

    /// Returns what the results say, or `None` if they are not those of the request.
    fn outcome(&self, grouped: &Grouped, mut results: Vec<StatementResult>) -> Option<Outcome> {
        if let Some(StatementResult::Failed(message)) = results.last() {
            return Some(match (grouped.failed(&results), results.len()) {
                (None, 1) if was_applied(message) => Outcome::AppliedBefore,
                (None, _) if is_without_tables(message) => Outcome::WithoutTables,
                (member, statements) => Outcome::Failed(member, statements - 1, message.clone()),
            });
        }
        let Some(StatementResult::Rows { values, .. }) = results.pop() else { return None };
        let recorded = self.writer.results(&values)?;
        Applied::new(recorded, Some(results), grouped.results).map(Outcome::Applied)
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

    /// The one at `failed` has failed beside others, and nothing was applied: those before it go together, then it, alone.
    fn wait_again(&mut self, members: Vec<Option<Asked>>, failed: usize) {
        let before = members[..failed].iter().flatten().count();
        self.planned = [before, 1].into_iter().filter(|members| *members > 0).collect();
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
    error(ErrorKind::CommitUnknown, message, "when the cluster answers again, read what it writes to find out")
}

/// Seconds since 1970, for the removal of what old writers left.
fn seconds() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}
