//! A scripted stand-in for an rqlite cluster: its HTTP interface, and what a client sees of Raft.
//!
//! Owns: the listeners, one for each node and one to control it. Runs as a process of its own, or on a thread. Invariant: what is committed is committed
//! once, on all nodes, whatever the client is told. Leaves out: Raft itself, and what rqlite does beyond the interface that
//! `flatwater-remote` uses. The shapes of its answers were taken from rqlite 10.2.

mod cluster;
mod faults;
mod serve;
mod statements;

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::net::TcpListener;
use tokio::sync::oneshot;

use cluster::Cluster;

const NODES: usize = 3;

pub(crate) type Shared = Arc<Mutex<Cluster>>;

pub(crate) fn lock(cluster: &Shared) -> MutexGuard<'_, Cluster> {
    cluster.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A double that runs. It ends when this is dropped.
pub struct Running {
    /// The address of each node.
    pub nodes: Vec<String>,
    /// The address by which it is controlled.
    pub control: String,
    _ends: oneshot::Sender<()>,
}

/// Starts a double on a thread of this process.
///
/// # Panics
/// Panics if it cannot listen.
#[must_use]
pub fn start() -> Running {
    let (tell, told) = std::sync::mpsc::channel();
    let (ends, ended) = oneshot::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let mut listeners = Vec::new();
            for _ in 0..=NODES {
                listeners.push(TcpListener::bind("127.0.0.1:0").await.expect("a free port"));
            }
            let addresses: Vec<String> =
                listeners.iter().map(|one| one.local_addr().expect("an address").to_string()).collect();
            let (control, nodes) = addresses.split_last().expect("a listener");
            let cluster: Shared = Arc::new(Mutex::new(Cluster::new(nodes.to_vec())));
            let mut serving = tokio::task::JoinSet::new();
            for (node, listener) in listeners.into_iter().enumerate() {
                serving.spawn(serve::listen(cluster.clone(), listener, (node < NODES).then_some(node)));
            }
            let _ = tell.send((nodes.to_vec(), control.clone()));
            // Nothing is sent: whoever has started it lets go of it.
            let _ = ended.await;
        });
    });
    let (nodes, control) = told.recv().expect("it listens");
    Running { nodes, control, _ends: ends }
}

/// Gives an order to the double that is controlled by this address, and returns what the double is at. Both are JSON.
///
/// # Errors
/// Those of the connection, and `Other` if the order is none.
pub fn order(control: &str, body: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(control)?;
    let head = "POST / HTTP/1.1\r\nHost: double\r\nConnection: close\r\nContent-Length";
    write!(stream, "{head}: {}\r\n\r\n{body}", body.len())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    match answer.split_once("\r\n\r\n") {
        Some((head, told)) if head.starts_with("HTTP/1.1 200") => Ok(told.to_owned()),
        _ => Err(std::io::Error::other(answer)),
    }
}

/// Serves until standard input ends. The first line of output is where it listens, as JSON.
///
/// # Panics
/// Panics if it cannot listen.
pub fn run() {
    let running = start();
    println!("{}", serde_json::json!({ "nodes": running.nodes, "control": running.control }));
    // Whoever started it ends.
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
    std::process::exit(0);
}
