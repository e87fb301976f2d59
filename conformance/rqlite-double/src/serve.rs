//! The HTTP interface of the nodes, and that by which the double is told what goes wrong.
//!
//! Owns: the requests, and making faults happen. Runs on the double's one thread. Leaves out: the database.

use std::convert::Infallible;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde_json::json;
use tokio::net::TcpListener;

use crate::cluster::Cluster;
use crate::faults::Fault;
use crate::statements::{Failed, INFINITE, Kind, Ways, json_text};
use crate::{Shared, lock};

/// How long what is executed late takes.
const LATE: Duration = Duration::from_millis(300);

/// The connection ends without an answer.
type Dropped = std::io::Error;
type Results = Result<Vec<serde_json::Value>, Failed>;
type Answer = Result<Response<BoxBody<Bytes, Dropped>>, Dropped>;

/// Serves a node, or the control.
pub(crate) async fn listen(cluster: Shared, listener: TcpListener, node: Option<usize>) {
    while let Ok((stream, _)) = listener.accept().await {
        let _ = stream.set_nodelay(true);
        let cluster = cluster.clone();
        tokio::spawn(async move {
            let service = service_fn(|request| {
                let cluster = cluster.clone();
                async move {
                    match node {
                        Some(node) => of_node(cluster, node, request).await,
                        None => control(&cluster, request).await,
                    }
                }
            });
            let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

async fn control(cluster: &Shared, request: Request<Incoming>) -> Answer {
    let body = whole(request).await?;
    match serde_json::from_slice(&body) {
        Ok(order) => {
            let mut cluster = lock(cluster);
            cluster.order(order);
            let Cluster { requests, leader, looks, .. } = &*cluster;
            Ok(json_answer(&json!({ "requests": requests, "leader": leader, "looks": looks })))
        }
        Err(error) => Ok(text(StatusCode::BAD_REQUEST, error.to_string())),
    }
}

async fn of_node(cluster: Shared, node: usize, request: Request<Incoming>) -> Answer {
    let path = request.uri().path().to_owned();
    let query = request.uri().query().unwrap_or_default().to_owned();
    let has = |name: &str| query.split('&').any(|part| part == name);
    let kind = match &*path {
        "/db/query" => Kind::Query,
        "/db/execute" => Kind::Execute,
        "/db/request" => Kind::Request,
        "/status" => return Ok(status(lock(&cluster).status(node))),
        _ => return Ok(text(StatusCode::NOT_FOUND, "404 page not found".into())),
    };
    let ways = Ways { kind, in_transaction: has("transaction"), blob_array: has("blob_array") };
    // What the client sends by itself, and scripts and numbers leave out, asks for no rows.
    let is_asked = kind != Kind::Execute || ways.blob_array;
    let body = whole(request).await?;
    if !(has("noparse") || has("norwtime") && has("norwrandom")) && is_rewritten(&body) {
        return Ok(text(StatusCode::INTERNAL_SERVER_ERROR, "SQL rewrite: it is not made here".into()));
    }
    let (leader, address, commit) = {
        let mut cluster = lock(&cluster);
        cluster.requests += u64::from(is_asked);
        let leader = cluster.leader_by(node);
        (leader, leader.map(|leader| cluster.nodes[leader].clone()), cluster.commit)
    };
    if has("level=none") {
        let results = lock(&cluster).read(&body, ways, leader == Some(node));
        return Ok(results_answer(results));
    }
    let Some(address) = address else { return Ok(no_leader(has("redirect"))) };
    if leader != Some(node) {
        // Forwarding is not made here: the client is to ask for the leader.
        return Ok(redirect(&address, &path, &query));
    }
    let fault = lock(&cluster).faults.next(is_asked);
    match fault {
        Fault::DropBefore => return Err(dropped()),
        Fault::HangBefore => return hang().await,
        Fault::LostBefore => {
            lock(&cluster).elect();
            return Ok(failed("leadership lost while committing log"));
        }
        Fault::Transfer => {
            lock(&cluster).elect();
            return Ok(failed("leadership transfer in progress"));
        }
        Fault::NoLeader => return Ok(no_leader(has("redirect"))),
        Fault::Nonsense => return Ok(text(StatusCode::OK, "<html>welcome</html>".into())),
        Fault::Nothing => return Ok(text(StatusCode::OK, String::new())),
        Fault::Circle => {
            // The node that is named sends the client back, and becomes the leader after that.
            let mut cluster = lock(&cluster);
            cluster.elect();
            let leader = cluster.leader.unwrap_or_default();
            return Ok(redirect(&cluster.nodes[leader].clone(), &path, &query));
        }
        Fault::Endless => return Ok(endless()),
        Fault::Waits => {
            let releases = lock(&cluster).releases;
            while lock(&cluster).releases == releases {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        }
        Fault::Full if kind != Kind::Query => {
            lock(&cluster).apply_elsewhere(&body, ways);
            return Ok(results_answer(Ok(vec![json!({ "error": "database or disk is full" })])));
        }
        Fault::Twice if kind != Kind::Query => {
            let _ = lock(&cluster).apply(&body, ways);
        }
        Fault::Held => {
            lock(&cluster).held.push((body, ways));
            return hang().await;
        }
        Fault::ExecutedLate => {
            let (cluster, body) = (cluster.clone(), body.clone());
            tokio::spawn(async move {
                tokio::time::sleep(LATE).await;
                let _ = lock(&cluster).apply(&body, ways);
            });
            return hang().await;
        }
        _ => {}
    }
    let results = match kind == Kind::Query {
        true => lock(&cluster).read(&body, ways, true),
        false => committed(cluster.clone(), body, ways, commit).await?,
    };
    match fault {
        Fault::DropAfter => Err(dropped()),
        Fault::HangAfter => hang().await,
        Fault::LostAfter => {
            lock(&cluster).elect();
            Ok(failed("leadership lost while committing log"))
        }
        Fault::ErrorAfter => Ok(text(StatusCode::INTERNAL_SERVER_ERROR, "a failure after the commit".into())),
        Fault::HalfAnAnswer => Ok(half(&results_answer_text(results))),
        _ => Ok(results_answer(results)),
    }
}

/// Returns true for texts that rqlite prints anew.
fn is_rewritten(body: &[u8]) -> bool {
    const CALLS: [&str; 8] =
        ["time(", "date(", "julianday(", "unixepoch(", "timediff(", "strftime(", "random(", "randomblob("];
    let body = String::from_utf8_lossy(body).to_ascii_lowercase();
    CALLS.iter().any(|call| body.contains(call))
}

/// Commits, also if the client does not wait for it.
async fn committed(cluster: Shared, body: Bytes, ways: Ways, takes: Duration) -> Result<Results, Dropped> {
    let queue = lock(&cluster).queue.clone();
    let commit = async move {
        let _turn = match &queue {
            Some(queue) => Some(queue.lock().await),
            None => None,
        };
        tokio::time::sleep(takes).await;
        lock(&cluster).apply(&body, ways)
    };
    tokio::spawn(commit).await.map_err(std::io::Error::other)
}

async fn whole(request: Request<Incoming>) -> Result<Bytes, Dropped> {
    request.into_body().collect().await.map(|body| body.to_bytes()).map_err(std::io::Error::other)
}

async fn hang() -> Answer {
    tokio::time::sleep(Duration::from_secs(3600)).await;
    Err(dropped())
}

fn dropped() -> Dropped {
    std::io::ErrorKind::ConnectionAborted.into()
}

fn text(status: StatusCode, text: String) -> Response<BoxBody<Bytes, Dropped>> {
    let mut answer = Response::new(full(text.into()));
    *answer.status_mut() = status;
    answer
}

fn full(bytes: Bytes) -> BoxBody<Bytes, Dropped> {
    Full::new(bytes).map_err(|never: Infallible| match never {}).boxed()
}

fn json_answer(value: &serde_json::Value) -> Response<BoxBody<Bytes, Dropped>> {
    text(StatusCode::OK, json_text(value))
}

fn failed(message: &str) -> Response<BoxBody<Bytes, Dropped>> {
    json_answer(&json!({ "results": [], "error": message }))
}

fn results_answer_text(results: Results) -> String {
    json_text(&json!({ "results": results.unwrap_or_default() }))
}

fn results_answer(results: Results) -> Response<BoxBody<Bytes, Dropped>> {
    match results {
        Ok(results) if results.iter().any(|result| result["error"] == INFINITE) => {
            text(StatusCode::INTERNAL_SERVER_ERROR, INFINITE.into())
        }
        Ok(results) => json_answer(&json!({ "results": results })),
        Err(Failed::Invalid(message)) => text(StatusCode::BAD_REQUEST, message),
        Err(Failed::Commit(message)) => failed(&message),
    }
}

fn no_leader(redirects: bool) -> Response<BoxBody<Bytes, Dropped>> {
    let status = if redirects { StatusCode::INTERNAL_SERVER_ERROR } else { StatusCode::SERVICE_UNAVAILABLE };
    text(status, "leader not found".into())
}

fn status(of_node: Option<(u64, bool)>) -> Response<BoxBody<Bytes, Dropped>> {
    match of_node {
        Some((applied, ready)) => json_answer(&json!({ "db_applied_index": applied, "ready": ready })),
        None => text(StatusCode::UNAUTHORIZED, String::new()),
    }
}

fn redirect(node: &str, path: &str, query: &str) -> Response<BoxBody<Bytes, Dropped>> {
    let mut answer = text(StatusCode::MOVED_PERMANENTLY, String::new());
    if let Ok(location) = format!("http://{node}{path}?{query}").parse() {
        answer.headers_mut().insert("Location", location);
    }
    answer
}

/// A part of the answer, and then the connection ends.
fn half(answer: &str) -> Response<BoxBody<Bytes, Dropped>> {
    let part = Bytes::copy_from_slice(&answer.as_bytes()[..answer.len() / 2]);
    let parts = [Ok(Frame::data(part)), Err(dropped())];
    let mut half = Response::new(BodyExt::boxed(StreamBody::new(parts_of(parts))));
    if let Ok(length) = answer.len().to_string().parse() {
        half.headers_mut().insert("Content-Length", length);
    }
    half
}

fn endless() -> Response<BoxBody<Bytes, Dropped>> {
    let part = Bytes::from_static(&[b' '; 64 << 10]);
    Response::new(BodyExt::boxed(StreamBody::new(parts_of(std::iter::repeat_with(move || {
        Ok(Frame::data(part.clone()))
    })))))
}

type Part = Result<Frame<Bytes>, Dropped>;

fn parts_of(parts: impl IntoIterator<Item = Part>) -> Parts<impl Iterator<Item = Part>> {
    Parts(parts.into_iter())
}

/// The parts of a body, as a stream that never waits.
struct Parts<I>(I);

impl<I: Iterator<Item = Part> + Unpin> futures_core::Stream for Parts<I> {
    type Item = Part;

    fn poll_next(mut self: std::pin::Pin<&mut Self>, _: &mut std::task::Context<'_>) -> std::task::Poll<Option<Part>> {
        std::task::Poll::Ready(self.0.next())
    }
}
