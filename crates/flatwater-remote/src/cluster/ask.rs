//! One request to a cluster or a server, until it is known what became of it.
//!
//! Owns: the attempts. Runs on the thread of the connection to the cluster. Invariants: what may have been executed is sent again
//! only if that changes nothing; no attempt begins after the time is over. Leaves out: what a request contains.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use flatwater::Result;

use super::nodes::{MOST_REDIRECTS, Nodes, pause};
use crate::dialect::Dialect;
use crate::http::Http;
use crate::options::{Level, RemoteOptions};
use crate::request::{How, Known, Request, Verdict};
use crate::results::Failure;

/// How long a replica may take for one answer.
const REPLICA: Duration = Duration::from_secs(1);

pub(crate) struct Cluster {
    pub(crate) http: Http,
    pub(crate) dialect: Dialect,
    nodes: Mutex<Nodes>,
    /// How long a node may take for one answer.
    pub(crate) attempt: Duration,
    /// The newest state of the database that an answer has told of; 0 if none has.
    newest: AtomicU64,
}

impl Cluster {
    pub(crate) fn new(options: &RemoteOptions) -> Result<Self> {
        let dialect = options.address.dialect;
        let nodes = options.address.nodes.iter().cloned();
        Ok(Self {
            http: Http::new(options)?,
            dialect,
            nodes: Mutex::new(match dialect {
                Dialect::Rqlite => Nodes::new(nodes),
                Dialect::Libsql => Nodes::with_primary(nodes),
            }),
            attempt: options.attempt_timeout,
            newest: AtomicU64::new(0),
        })
    }

    /// Which state a read must have at least, so that it sees what this client has written and read before.
    pub(crate) fn newest(&self) -> Option<u64> {
        Some(self.newest.load(Ordering::Relaxed)).filter(|index| *index > 0)
    }

    /// Takes what an answer says of the state of its node. `before` is what was the newest when it was asked: a primary that is behind that
    /// has begun another log, after a crash.
    pub(crate) fn saw(&self, node: &str, before: Option<u64>, index: Option<u64>) {
        let Some(index) = index else { return };
        if before.is_some_and(|before| index < before) && *node == *self.leader() {
            self.newest.store(index, Ordering::Relaxed);
        } else {
            self.newest.fetch_max(index, Ordering::Relaxed);
        }
    }

    /// The node that writes, as far as is known.
    pub(crate) fn leader(&self) -> Arc<str> {
        self.nodes().leader()
    }

    /// Any node, the next time another one.
    pub(crate) fn any(&self) -> Arc<str> {
        self.nodes().any(Instant::now())
    }

    /// This node did not answer.
    pub(crate) fn failed(&self, node: &str) {
        self.nodes().failed(node, Instant::now());
    }

    pub(crate) async fn ask(&self, request: &Request) -> Known {
        let (mut attempts, mut redirects) = (0_u32, 0);
        let mut why = String::from("the time of the call was over before it began");
        loop {
            let left = request.until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Known::TooLate(why);
            }
            let (node, at_most) = self.next(request.how, attempts);
            let (path, before) = (self.dialect.path(request.how), self.newest());
            let sent = self.http.post(&node, &path, request.body.clone(), left.min(at_most)).await;
            let verdict = self.dialect.verdict(request.how, sent);
            if matches!(verdict, Verdict::NotExecuted(_) | Verdict::Unknown(_)) {
                self.failed(&node);
            }
            why = match verdict {
                Verdict::Results { results, index } => {
                    self.saw(&node, before, index);
                    return Known::Results(results);
                }
                Verdict::Refused(error) => return Known::Refused(error),
                Verdict::Undone(failure) => return Known::Undone(failure),
                Verdict::Doubtful(failure) if request.repeats => return Known::Undone(failure),
                Verdict::Doubtful(failure) => return Known::Doubtful(failure),
                // A read has no other answer.
                Verdict::Unmade(why) if request.repeats => return Known::Undone(Failure::of_message(why)),
                Verdict::Unmade(why) => return Known::Unknown(why),
                Verdict::Elsewhere(leader) if redirects < MOST_REDIRECTS => {
                    redirects += 1;
                    self.nodes().is_leader(&leader);
                    continue;
                }
                Verdict::Elsewhere(_) => format!("{node} and others send a request on in a circle"),
                Verdict::NotExecuted(why) => why,
                Verdict::Unknown(why) if !request.repeats => return Known::Unknown(why),
                Verdict::Unknown(why) => why,
            };
            redirects = 0;
            let pause = pause(attempts, rand::random());
            attempts += 1;
            tokio::time::sleep(pause.min(request.until.saturating_duration_since(Instant::now()))).await;
        }
    }

    /// Who is asked, and how long that may take. A replica that does not answer soon is not worth waiting for.
    fn next(&self, how: How, attempts: u32) -> (Arc<str>, Duration) {
        let mut nodes = self.nodes();
        match (how, self.dialect) {
            (How::Read(Level::None { .. }), Dialect::Rqlite) => (nodes.any(Instant::now()), self.attempt),
            // In turn with the primary, which has what a replica may not have yet.
            (How::Read(Level::None { .. }), Dialect::Libsql) if attempts.is_multiple_of(2) => {
                (nodes.any(Instant::now()), self.attempt.min(REPLICA))
            }
            (How::Read(_) | How::Write | How::Snapshot, _) => (nodes.leader(), self.attempt),
        }
    }

    fn nodes(&self) -> MutexGuard<'_, Nodes> {
        self.nodes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
