//! One request to the cluster, until it is known what became of it.
//!
//! Owns: the attempts. Runs on the thread of the connection to the cluster. Invariants: what may have been executed is sent again
//! only if that changes nothing; no attempt begins after the time is over. Leaves out: what a request contains.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use flatwater::{Error, Result};

use super::answer::StatementResult;
use super::nodes::{MOST_REDIRECTS, Nodes, pause};
use super::verdict::{Verdict, verdict};
use crate::http::Http;
use crate::options::RemoteOptions;

pub(crate) struct Cluster {
    http: Http,
    nodes: Mutex<Nodes>,
    /// How long a node may take for one answer.
    attempt: Duration,
}

/// Who is asked.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum To {
    Leader,
    Any,
}

pub(crate) struct Request {
    pub(crate) path: String,
    pub(crate) body: Bytes,
    pub(crate) to: To,
    /// It reads, or changes nothing the second time: if nothing is known of an attempt, there is another one.
    pub(crate) repeats: bool,
    pub(crate) until: Instant,
}

/// What is known of a request in the end.
pub(crate) enum Known {
    Results(Vec<StatementResult>),
    /// It was not executed.
    Refused(Error),
    /// It failed as a whole with this message, and nothing of it has stayed.
    Undone(String),
    /// Its time is over, and it was not executed, unless it `repeats`.
    TooLate(String),
    /// It may have been executed, and does not repeat.
    Unknown(String),
}

impl Cluster {
    pub(crate) fn new(options: &RemoteOptions) -> Result<Self> {
        Ok(Self {
            http: Http::new(options)?,
            nodes: Mutex::new(Nodes::new(options.address.nodes.iter().cloned())),
            attempt: options.attempt_timeout,
        })
    }

    pub(crate) async fn ask(&self, request: &Request) -> Known {
        let (mut attempts, mut redirects) = (0_u32, 0);
        let mut why = String::from("the time of the call was over before it began");
        loop {
            let left = request.until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Known::TooLate(why);
            }
            let node = match request.to {
                To::Leader => self.nodes().leader(),
                To::Any => self.nodes().any(),
            };
            let sent = self.http.post(&node, &request.path, request.body.clone(), left.min(self.attempt)).await;
            let verdict = verdict(sent);
            if matches!(verdict, Verdict::NotExecuted(_) | Verdict::Unknown(_)) {
                self.nodes().failed(&node);
            }
            why = match verdict {
                Verdict::Results(results) => return Known::Results(results),
                Verdict::Refused(error) => return Known::Refused(error),
                Verdict::Undone(message) => return Known::Undone(message),
                // A read has no other answer.
                Verdict::Unmade(why) if request.repeats => return Known::Undone(why),
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

    fn nodes(&self) -> MutexGuard<'_, Nodes> {
        self.nodes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
