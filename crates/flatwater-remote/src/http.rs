//! One request to one node, over HTTP/1.1 or 2, with TLS or without.
//!
//! Owns: the connections, which are kept, and what is known of a request that has no answer. Runs on the thread of the
//! connection to the cluster. Invariants: a redirect is told and not followed; nothing is sent twice, except what was refused
//! before it was read; the password is in no message. Leaves out: what an answer means, and asking again.

use std::time::{Duration, Instant};

use crate::options::RemoteOptions;
use crate::tls::tls;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use bytes::Bytes;
use flatwater::bindings::server::error;
use flatwater::{Error, ErrorCode, Result};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue, LOCATION};
use hyper::{Method, Request, StatusCode};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};

/// How long a node may take to accept a connection.
const CONNECT: Duration = Duration::from_secs(1);
/// A connection that was not used for so long is closed.
const IDLE: Duration = Duration::from_secs(60);
/// So many connections to one node are kept while they are not used.
const KEPT: usize = 32;
/// How often a connection is asked whether it lives, and how long it may take to say so.
const PING: Duration = Duration::from_secs(5);
const PONG: Duration = Duration::from_secs(2);
/// The pause before a node that cannot be reached is tried again.
const AGAIN: Duration = Duration::from_millis(50);
/// The header by which a libSQL server knows which of its databases is meant.
const NAMESPACE: &str = "x-namespace-bin";
/// An answer that is longer is refused.
const ANSWER_BYTES: usize = 256 << 20;

pub(crate) struct Http {
    client: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    scheme: &'static str,
    authorization: Option<HeaderValue>,
    /// Which database of the server it is.
    database: Option<HeaderValue>,
    /// What must not be in a message.
    secrets: Vec<String>,
}

/// What became of a request.
pub(crate) enum Sent {
    Answer {
        status: u16,
        location: Option<String>,
        body: Bytes,
    },
    /// No part of it has reached the node.
    Unreached(String),
    /// The same, and it is no use to ask again: the node is not who it says.
    Untrusted(String),
    /// The node may have it.
    Unanswered(String),
}

impl Http {
    pub(crate) fn new(options: &RemoteOptions) -> Result<Self> {
        let mut connector = HttpConnector::new();
        connector.set_connect_timeout(Some(CONNECT));
        connector.set_nodelay(true);
        connector.enforce_http(false);
        let has_tls = options.address.has_tls;
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(tls(has_tls, options)?)
            .https_or_http()
            .enable_http1()
            .enable_http2()
            .wrap_connector(connector);
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE)
            .pool_max_idle_per_host(KEPT)
            .timer(TokioTimer::new())
            // One connection of HTTP/2 has all requests to a node: one that is dead must be noticed.
            .http2_keep_alive_interval(PING)
            .http2_keep_alive_timeout(PONG)
            .build(connector);
        let scheme = if has_tls { "https" } else { "http" };
        let database = options.database.as_deref().map(|name| HeaderValue::from_str(&STANDARD_NO_PAD.encode(name)));
        let database = database.transpose().map_err(|_| wrong("the name of the database cannot be sent".into()))?;
        Ok(Self { client, scheme, authorization: authorization(options)?, database, secrets: secrets(options) })
    }

    pub(crate) fn scheme(&self) -> &'static str {
        self.scheme
    }

    /// Sends a request and reads its answer, within `limit`.
    pub(crate) async fn post(&self, node: &str, path: &str, body: Bytes, limit: Duration) -> Sent {
        self.send(Method::POST, node, path, body, limit).await
    }

    /// The same for a question without a body.
    pub(crate) async fn get(&self, node: &str, path: &str, limit: Duration) -> Sent {
        self.send(Method::GET, node, path, Bytes::new(), limit).await
    }

    /// Sends a request whose answer is read as it comes. `None` if there is none, or it is a refusal. A node that cannot be reached is
    /// tried again, within `limit`.
    pub(crate) async fn open(&self, node: &str, path: &str, body: Bytes, limit: Duration) -> Option<Incoming> {
        let until = Instant::now() + limit;
        loop {
            let request = self.request(Method::POST, node, path, body.clone()).ok()?;
            let answer = tokio::time::timeout_at(until.into(), self.client.request(request)).await.ok()?;
            match answer {
                Ok(answer) if answer.status() == StatusCode::OK => return Some(answer.into_body()),
                Err(error) if error.is_connect() && !is_of_tls(&error) => tokio::time::sleep(AGAIN).await,
                Ok(_) | Err(_) => return None,
            }
        }
    }

    async fn send(&self, method: Method, node: &str, path: &str, body: Bytes, limit: Duration) -> Sent {
        let request = match self.request(method, node, path, body) {
            Ok(request) => request,
            Err(error) => return Sent::Unreached(format!("{node}: {error}")),
        };
        match tokio::time::timeout(limit, self.exchange(node, request)).await {
            Ok(sent) => sent,
            // A connection that was not accepted in time ends before, unless the limit is shorter.
            Err(_) => Sent::Unanswered(format!("{node} has not answered for {} ms", limit.as_millis())),
        }
    }

    fn request(
        &self,
        method: Method,
        node: &str,
        path: &str,
        body: Bytes,
    ) -> hyper::http::Result<Request<Full<Bytes>>> {
        let request = Request::builder()
            .method(method)
            .uri(format!("{}://{node}{path}", self.scheme))
            .header(CONTENT_TYPE, "application/json");
        let request = match &self.authorization {
            Some(authorization) => request.header(AUTHORIZATION, authorization),
            None => request,
        };
        let request = match &self.database {
            Some(database) => request.header(NAMESPACE, database),
            None => request,
        };
        request.body(Full::new(body))
    }

    async fn exchange(&self, node: &str, request: Request<Full<Bytes>>) -> Sent {
        let answer = match self.client.request(request).await {
            Ok(answer) => answer,
            // Later it may have the request.
            Err(error) if error.is_connect() && is_of_tls(&error) => {
                return Sent::Untrusted(format!("{node} cannot be trusted: {}", cause(&error)));
            }
            Err(error) if error.is_connect() => {
                return Sent::Unreached(format!("{node} cannot be reached: {}", cause(&error)));
            }
            Err(error) => return Sent::Unanswered(format!("{node} gave no answer: {}", cause(&error))),
        };
        let status = answer.status().as_u16();
        let location = answer.headers().get(LOCATION).and_then(|location| location.to_str().ok()).map(str::to_owned);
        match Limited::new(answer.into_body(), ANSWER_BYTES).collect().await {
            Ok(body) => {
                let body = body.to_bytes();
                // What a proxy says may have in it what it was sent.
                let body = if status == 200 { body } else { without(&self.secrets, body) };
                Sent::Answer { status, location, body }
            }
            Err(error) => Sent::Unanswered(format!("{node} gave a part of an answer: {error}")),
        }
    }
}

/// A shorter one may be a word.
const SECRET_BYTES: usize = 4;

fn secrets(options: &RemoteOptions) -> Vec<String> {
    let user = options.user.as_ref();
    let encoded = user.map(|(name, password)| STANDARD.encode(format!("{name}:{password}")));
    let all = options.token.iter().chain(user.map(|(_, password)| password)).chain(encoded.iter());
    all.filter(|secret| secret.len() >= SECRET_BYTES).cloned().collect()
}

/// A text without secrets.
fn without(secrets: &[String], body: Bytes) -> Bytes {
    let text = String::from_utf8_lossy(&body);
    match secrets.iter().any(|secret| text.contains(&**secret)) {
        true => secrets.iter().fold(text.into_owned(), |text, secret| text.replace(&**secret, "(a secret)")).into(),
        false => body,
    }
}

/// The error of a node that is not trusted.
pub(crate) fn untrusted(why: String) -> Error {
    error(
        ErrorCode::Server,
        why,
        "trust the certificate of its authority; for a server without TLS write rqlite://, or tls=0 for libsql://",
    )
}

/// Returns true if TLS has failed: a certificate, or a node that speaks none.
fn is_of_tls(error: &(dyn std::error::Error + 'static)) -> bool {
    if error.is::<rustls::Error>() {
        return true;
    }
    // What is inside of an error of the system is not its source, but the source of that.
    let inside = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
    inside.is_some_and(|inside| is_of_tls(inside)) || error.source().is_some_and(is_of_tls)
}

/// Returns the innermost cause, which is the one that tells something.
fn cause(error: &(dyn std::error::Error + 'static)) -> String {
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}

fn authorization(options: &RemoteOptions) -> Result<Option<HeaderValue>> {
    let text = match (&options.token, &options.user) {
        (Some(token), _) => format!("Bearer {token}"),
        (None, Some((name, password))) => format!("Basic {}", STANDARD.encode(format!("{name}:{password}"))),
        (None, None) => return Ok(None),
    };
    let value = HeaderValue::from_str(&text);
    let mut value = value.map_err(|_| wrong("the token has a sign that a header cannot have".into()))?;
    value.set_sensitive(true);
    Ok(Some(value))
}

fn wrong(message: String) -> Error {
    error(ErrorCode::InvalidOption, message, "look at what the connection was given")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_that_comes_back_is_not_shown() {
        let options = RemoteOptions::new("rqlite://ada:open sesame@h/").unwrap();
        let secrets = secrets(&options);
        let body = format!("no: Basic {}, open sesame", STANDARD.encode("ada:open sesame"));
        assert_eq!(without(&secrets, body.into()), "no: Basic (a secret), (a secret)");
        assert_eq!(without(&secrets, Bytes::from_static(b"\xffno")), Bytes::from_static(b"\xffno"));
    }
}
