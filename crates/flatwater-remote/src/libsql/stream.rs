//! A connection of the server that is kept between requests: a stream, which a baton names.
//!
//! Owns: the baton, and where the next request must go. Runs on the thread of the connection to the server. Invariants: requests are sent one
//! after the other, each with the baton of the answer before; a stream of which an answer is missing is not used again.
//! Leaves out: what is sent (`transaction`).

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use flatwater::Error;
use hyper::Uri;

use super::answer::{Answer, Batch};
use super::json::{PATH, Steps};
use super::verdict::{refusal, shown, without_user};
use crate::http::{Http, Sent, untrusted};

pub(crate) struct Stream {
    node: Arc<str>,
    path: String,
    /// That of the last answer. The first request has none.
    baton: Option<String>,
}

/// What became of a request.
pub(crate) enum Exchanged {
    Batch(Batch),
    /// It was not executed.
    Unreached(String),
    /// It was not executed and never will be.
    Refused(Error),
    /// There is an answer that cannot be read, or used.
    Unreadable(String),
    /// There is no answer.
    Lost(String),
}

impl Stream {
    /// A stream that begins with its first request, to this node.
    pub(crate) fn new(node: Arc<str>) -> Self {
        Self { node, path: PATH.to_owned(), baton: None }
    }

    /// Sends steps, and reads what became of them, within `limit`.
    pub(crate) async fn send(&mut self, http: &Http, steps: Steps, closes: bool, limit: Duration) -> Exchanged {
        let body = steps.finish(self.baton.as_deref(), closes);
        // Without an answer it must not be sent again.
        let had_baton = self.baton.take().is_some();
        let sent = http.post(&self.node, &self.path, body, limit).await;
        let (status, location, body) = match sent {
            Sent::Unreached(why) if had_baton => return Exchanged::Lost(why),
            Sent::Unreached(why) => return Exchanged::Unreached(why),
            Sent::Untrusted(why) => return Exchanged::Refused(untrusted(why)),
            Sent::Unanswered(why) => return Exchanged::Lost(why),
            Sent::Answer { status, location, body } => (status, location, body),
        };
        match status {
            200 => self.read(http, &body),
            // The server says so of a baton that it does not know any more.
            400 if had_baton => Exchanged::Lost(shown(&body)),
            _ => match refusal(status, location.as_deref(), &body) {
                Some(refusal) => Exchanged::Refused(refusal),
                None => Exchanged::Lost(format!("the server answered with status {status}: {}", shown(&body))),
            },
        }
    }

    /// Ends the stream, and with it what was not committed, if the server has it still.
    pub(crate) async fn close(&mut self, http: &Http, limit: Duration) {
        if self.baton.is_some() {
            let _ = self.send(http, Steps::read(None), true, limit).await;
        }
    }

    fn read(&mut self, http: &Http, body: &Bytes) -> Exchanged {
        let nonsense = || Exchanged::Unreadable("the answer is not one of a libSQL server".into());
        let Some(mut answer) = Answer::parse(body) else { return nonsense() };
        self.baton = answer.baton.take();
        if let Some(base) = answer.base_url.take() {
            match next_node(&base, http.scheme()) {
                Some((node, path)) => (self.node, self.path) = (node, path),
                None => {
                    let base = without_user(&base);
                    return Exchanged::Unreadable(format!(
                        "the server sends its clients to {base:?}, which is not as safe"
                    ));
                }
            }
        }
        answer.batch().map_or_else(nonsense, Exchanged::Batch)
    }
}

/// The node and the path of an address such as `https://host:443/base`, which has TLS if the first one had.
fn next_node(base: &str, scheme: &str) -> Option<(Arc<str>, String)> {
    let address: Uri = base.parse().ok()?;
    if address.scheme_str() != Some(scheme) {
        return None;
    }
    let port = address.port_u16().unwrap_or(if scheme == "https" { 443 } else { 80 });
    let node = format!("{}:{port}", address.host()?);
    Some((node.into(), format!("{}{PATH}", address.path().trim_end_matches('/'))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_request_goes_where_the_answer_says_if_that_is_as_safe() {
        let next = |base, scheme| next_node(base, scheme).map(|(node, path)| (node.to_string(), path));
        let expected = Some(("a.example.com:443".to_owned(), "/v3/pipeline".to_owned()));
        assert_eq!(next("https://a.example.com", "https"), expected);
        assert_eq!(next("http://h:8080/db/", "http"), Some(("h:8080".into(), "/db/v3/pipeline".into())));
        assert_eq!((next("http://h:8080", "https"), next("nonsense", "http")), (None, None));
    }
}
