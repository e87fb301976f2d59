//! A cluster of rqlite, as three processes, each on a host of its own if there is a network for it.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use flatwater_remote::{Remote, RemoteOptions};
use serde_json::Value;
use tempfile::TempDir;

use super::network::Network;
use crate::double::wait_until;

pub(super) const NODES: usize = 3;

struct Node {
    child: Child,
    /// Where it serves clients.
    http: String,
    arguments: Vec<String>,
}

pub(super) struct Cluster {
    nodes: Vec<Node>,
    pub(super) network: Option<Network>,
    _folder: TempDir,
}

/// Ports that nothing listens on, all different.
fn free_ports(number: usize) -> Vec<u16> {
    let all: Vec<_> = (0..number).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
    all.iter().map(|listens| listens.local_addr().unwrap().port()).collect()
}

fn spawn(network: Option<&Network>, at: usize, arguments: &[String]) -> Child {
    let program = std::env::var_os("RQLITED").expect("RQLITED is the path of rqlited");
    let mut command = match network {
        Some(network) => {
            let mut command = network.on(at);
            command.arg(program);
            command
        }
        None => Command::new(program),
    };
    command.args(arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

/// The JSON or text of an answer with status 200. A node that is stopped or cut off has a second to answer.
fn get(address: &str, path: &str) -> Option<String> {
    let mut stream = TcpStream::connect_timeout(&address.parse().unwrap(), Duration::from_secs(1)).ok()?;
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
    pub(super) fn start(network: Option<Network>) -> Self {
        let (folder, ports) = (tempfile::tempdir().unwrap(), free_ports(2 * NODES));
        let (http, raft) = ports.split_at(NODES);
        let local = |_: usize| "127.0.0.1".to_owned();
        let between =
            |at| format!("{}:{}", network.as_ref().map_or_else(|| local(at), |net| net.between(at)), raft[at]);
        let served = |at| format!("{}:{}", network.as_ref().map_or_else(|| local(at), |net| net.served(at)), http[at]);
        let join: Vec<String> = (0..NODES).map(between).collect();
        let node = |at: usize| {
            let arguments: Vec<String> = [
                "-node-id",
                &(at + 1).to_string(),
                "-http-addr",
                &served(at),
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
            Node { child: spawn(network.as_ref(), at, &arguments), http: served(at), arguments }
        };
        let nodes = (0..NODES).map(node).collect();
        let cluster = Self { nodes, network, _folder: folder };
        cluster.wait_for_all();
        cluster
    }

    pub(super) fn wait_for_all(&self) {
        wait_until(|| self.nodes.iter().all(|node| get(&node.http, "/readyz").is_some()));
    }

    /// Which node leads, as one of them says that is not `but`.
    pub(super) fn leader(&self, but: Option<usize>) -> usize {
        let mut leader = None;
        wait_until(|| {
            let asked = self.nodes.iter().enumerate().filter(|(at, _)| Some(*at) != but);
            leader = asked.filter_map(|(_, node)| self.leader_by(node)).find(|leader| Some(*leader) != but);
            leader.is_some()
        });
        leader.unwrap()
    }

    fn leader_by(&self, node: &Node) -> Option<usize> {
        let nodes: Value = serde_json::from_str(&get(&node.http, "/nodes?timeout=300ms")?).ok()?;
        // By their numbers, or as a list.
        let list = nodes["nodes"].as_array().cloned().unwrap_or_default();
        (0..NODES).find(|at| {
            let id = (at + 1).to_string();
            nodes[&id]["leader"] == true || list.iter().any(|node| node["id"] == id && node["leader"] == true)
        })
    }

    /// A client that knows of one node. What waits for it ends soon.
    pub(super) fn connect_to(&self, at: usize) -> Remote {
        let options = RemoteOptions::new(&format!("rqlite://{}", self.nodes[at].http)).unwrap();
        Remote::with(options.attempt_timeout(Duration::from_secs(1)).timeout(Duration::from_secs(3))).unwrap()
    }

    pub(super) fn kill(&mut self, at: usize) {
        let _ = self.nodes[at].child.kill();
        self.nodes[at].child.wait().unwrap();
    }

    pub(super) fn restart(&mut self, at: usize) {
        self.nodes[at].child = spawn(self.network.as_ref(), at, &self.nodes[at].arguments);
        self.wait_for_all();
    }

    pub(super) fn signal(&self, at: usize, signal: &str) {
        let process = self.nodes[at].child.id().to_string();
        assert!(Command::new("kill").args([signal, &process]).status().unwrap().success());
    }

    pub(super) fn connect(&self) -> Remote {
        let nodes: Vec<&str> = self.nodes.iter().map(|node| &*node.http).collect();
        let options = RemoteOptions::new(&format!("rqlite://{}", nodes.join(","))).unwrap();
        Remote::with(options.attempt_timeout(Duration::from_secs(1)).timeout(Duration::from_secs(120))).unwrap()
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        (0..NODES).for_each(|at| self.kill(at));
    }
}
