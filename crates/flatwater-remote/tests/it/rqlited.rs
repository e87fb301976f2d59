//! The client beside a cluster of rqlite, as three processes.
//!
//! `RQLITED` is the path of its program; `make test-rqlite` runs these.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use flatwater::Database;
use flatwater_remote::{Level, Remote, RemoteOptions};
use serde_json::Value;
use tempfile::TempDir;

use super::double::{runtime, wait_until};
use super::same_calls::program;

const NODES: usize = 3;

struct Node {
    child: Child,
    http: u16,
    arguments: Vec<String>,
}

struct Cluster {
    nodes: Vec<Node>,
    _folder: TempDir,
}

/// Ports that nothing listens on, all different.
fn free_ports(number: usize) -> Vec<u16> {
    let all: Vec<_> = (0..number).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
    all.iter().map(|listens| listens.local_addr().unwrap().port()).collect()
}

fn spawn(arguments: &[String]) -> Child {
    let program = std::env::var_os("RQLITED").expect("RQLITED is the path of rqlited");
    Command::new(program).args(arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

/// The JSON or text of an answer with status 200. A node that is stopped has a second to answer.
fn get(port: u16, path: &str) -> Option<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(1))).ok()?;
    // Of this version of HTTP, so that the body comes as it is.
    write!(stream, "GET {path} HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n").ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    head.lines().next()?.contains(" 200").then(|| body.to_owned())
}

impl Cluster {
    /// Starts one whose nodes notice soon that another one is gone.
    fn start() -> Self {
        let (folder, ports) = (tempfile::tempdir().unwrap(), free_ports(2 * NODES));
        let (http, raft) = ports.split_at(NODES);
        let join: Vec<String> = raft.iter().map(|port| format!("127.0.0.1:{port}")).collect();
        let node = |at: usize| {
            let arguments: Vec<String> = [
                "-node-id",
                &(at + 1).to_string(),
                "-http-addr",
                &format!("127.0.0.1:{}", http[at]),
                "-raft-addr",
                &join[at],
                "-bootstrap-expect",
                &NODES.to_string(),
                "-join",
                &join.join(","),
                "-raft-heartbeat-timeout",
                "250ms",
                "-raft-election-timeout",
                "250ms",
                "-raft-leader-lease-timeout",
                "200ms",
                &folder.path().join(at.to_string()).display().to_string(),
            ]
            .map(str::to_owned)
            .to_vec();
            Node { child: spawn(&arguments), http: http[at], arguments }
        };
        let cluster = Self { nodes: (0..NODES).map(node).collect(), _folder: folder };
        cluster.wait_for_all();
        cluster
    }

    fn wait_for_all(&self) {
        wait_until(|| self.nodes.iter().all(|node| get(node.http, "/readyz").is_some()));
    }

    /// Which node leads, as one of them says that is not `but`.
    fn leader(&self, but: Option<usize>) -> usize {
        let mut leader = None;
        wait_until(|| {
            let asked = self.nodes.iter().enumerate().filter(|(at, _)| Some(*at) != but);
            leader = asked.filter_map(|(_, node)| self.leader_by(node)).find(|leader| Some(*leader) != but);
            leader.is_some()
        });
        leader.unwrap()
    }

    fn leader_by(&self, node: &Node) -> Option<usize> {
        let nodes: Value = serde_json::from_str(&get(node.http, "/nodes")?).ok()?;
        // A list in later versions.
        let list = nodes["nodes"].as_array().cloned().unwrap_or_default();
        (0..NODES).find(|at| {
            let id = (at + 1).to_string();
            nodes[&id]["leader"] == true || list.iter().any(|node| node["id"] == id && node["leader"] == true)
        })
    }

    fn kill(&mut self, at: usize) {
        let _ = self.nodes[at].child.kill();
        self.nodes[at].child.wait().unwrap();
    }

    fn restart(&mut self, at: usize) {
        self.nodes[at].child = spawn(&self.nodes[at].arguments);
        self.wait_for_all();
    }

    fn signal(&self, at: usize, signal: &str) {
        let process = self.nodes[at].child.id().to_string();
        assert!(Command::new("kill").args([signal, &process]).status().unwrap().success());
    }

    fn connect(&self) -> Remote {
        let nodes: Vec<String> = self.nodes.iter().map(|node| format!("127.0.0.1:{}", node.http)).collect();
        let options = RemoteOptions::new(&format!("rqlite://{}", nodes.join(","))).unwrap();
        Remote::with(options.attempt_timeout(Duration::from_secs(1)).timeout(Duration::from_secs(120))).unwrap()
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        (0..NODES).for_each(|at| self.kill(at));
    }
}

#[test]
#[ignore = "needs rqlited: make test-rqlite"]
fn a_program_gets_the_same_on_a_file_and_on_rqlite() {
    let cluster = Cluster::start();
    runtime().block_on(async {
        let file = Database::open(":memory:").await.unwrap();
        assert_eq!(program(&cluster.connect()).await.unwrap(), program(&file).await.unwrap());
    });
}

#[test]
#[ignore = "needs rqlited: make test-rqlite"]
fn each_write_on_rqlite_is_applied_once_while_leaders_are_killed_and_stopped() {
    const TASKS: usize = 8;
    let mut cluster = Cluster::start();
    let table = "CREATE TABLE counts (id INTEGER PRIMARY KEY, n INTEGER)";
    cluster.connect().execute(table, ()).wait().unwrap();
    let (ends, acknowledged) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let writers: Vec<_> = (0..TASKS)
        .map(|id| {
            let (remote, ends, acknowledged) = (cluster.connect(), ends.clone(), acknowledged.clone());
            std::thread::spawn(move || {
                let add = "INSERT INTO counts VALUES (?, 1) ON CONFLICT DO UPDATE SET n = n + 1";
                let mut own = 0_i64;
                while !ends.load(Ordering::Relaxed) {
                    remote.execute(add, (id as i64,)).wait().unwrap();
                    acknowledged.fetch_add(1, Ordering::Relaxed);
                    own += 1;
                    // It reads what it wrote.
                    let read = remote.with_level(Level::Linearizable);
                    let n: i64 = read.query_value("SELECT n FROM counts WHERE id = ?", (id as i64,)).wait().unwrap();
                    assert_eq!(n, own);
                }
                own
            })
        })
        .collect();
    let wait_for_writes = || {
        let until = acknowledged.load(Ordering::Relaxed) + 200;
        wait_until(|| acknowledged.load(Ordering::Relaxed) >= until);
    };
    for _ in 0..2 {
        wait_for_writes();
        let killed = cluster.leader(None);
        cluster.kill(killed);
        cluster.leader(Some(killed));
        wait_for_writes();
        cluster.restart(killed);
        let stopped = cluster.leader(None);
        cluster.signal(stopped, "-STOP");
        cluster.leader(Some(stopped));
        wait_for_writes();
        cluster.signal(stopped, "-CONT");
        cluster.wait_for_all();
    }
    wait_for_writes();
    ends.store(true, Ordering::Relaxed);
    let own: Vec<i64> = writers.into_iter().map(|writer| writer.join().unwrap()).collect();
    let read = cluster.connect().with_level(Level::Strong);
    assert_eq!(read.query_values::<i64>("SELECT n FROM counts ORDER BY id", ()).wait().unwrap(), own);
    // Each node comes to the same.
    for node in 0..NODES {
        let one = Remote::connect(&format!("rqlite://127.0.0.1:{}", cluster.nodes[node].http)).unwrap();
        let its = one.with_level(Level::None { freshness: None });
        wait_until(|| its.query_values::<i64>("SELECT n FROM counts ORDER BY id", ()).wait().unwrap() == own);
    }
}
