//! The client beside a cluster of rqlite.
//!
//! `RQLITED` is the path of its program; `make test-rqlite` runs these.

mod cluster;
mod network;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;

use cluster::{Cluster, NODES};
use flatwater::Database;
use flatwater_remote::Level;
use network::{Network, Side};

use super::double::{runtime, wait_until};
use super::same_calls::program;

const COUNTS: &str = "SELECT n FROM counts ORDER BY id";

/// Threads that add to a counter each, and read what they wrote.
struct Writers {
    threads: Vec<JoinHandle<i64>>,
    ends: Arc<AtomicBool>,
    acknowledged: Arc<AtomicU64>,
}

impl Writers {
    fn start(cluster: &Cluster) -> Self {
        let table = "CREATE TABLE counts (id INTEGER PRIMARY KEY, n INTEGER)";
        cluster.connect().execute(table, ()).wait().unwrap();
        let (ends, acknowledged) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let thread = |id: i64| {
            let (remote, ends, acknowledged) = (cluster.connect(), ends.clone(), acknowledged.clone());
            std::thread::spawn(move || {
                let add = "INSERT INTO counts VALUES (?, 1) ON CONFLICT DO UPDATE SET n = n + 1";
                let mut own = 0_i64;
                while !ends.load(Ordering::Relaxed) {
                    remote.execute(add, (id,)).wait().unwrap();
                    acknowledged.fetch_add(1, Ordering::Relaxed);
                    own += 1;
                    let read = remote.with_level(Level::Linearizable);
                    let n: i64 = read.query_value("SELECT n FROM counts WHERE id = ?", (id,)).wait().unwrap();
                    assert_eq!(n, own);
                }
                own
            })
        };
        Self { threads: (0..8).map(thread).collect(), ends, acknowledged }
    }

    fn wait_for_more(&self) {
        let until = self.acknowledged.load(Ordering::Relaxed) + 200;
        wait_until(|| self.acknowledged.load(Ordering::Relaxed) >= until);
    }

    /// Ends them. Each counter is what its thread knows, on each node.
    fn check(self, cluster: &Cluster) {
        self.wait_for_more();
        self.ends.store(true, Ordering::Relaxed);
        let own: Vec<i64> = self.threads.into_iter().map(|thread| thread.join().unwrap()).collect();
        let read = cluster.connect().with_level(Level::Strong);
        assert_eq!(read.query_values::<i64>(COUNTS, ()).wait().unwrap(), own);
        for node in 0..NODES {
            let its = cluster.connect_to(node).with_level(Level::None { freshness: None });
            wait_until(|| its.query_values::<i64>(COUNTS, ()).wait().unwrap() == own);
        }
    }
}

#[test]
#[ignore = "needs rqlited: make test-rqlite"]
fn a_program_gets_the_same_on_a_file_and_on_rqlite() {
    let cluster = Cluster::start(None);
    runtime().block_on(async {
        let file = Database::open(":memory:").await.unwrap();
        assert_eq!(program(&cluster.connect()).await.unwrap(), program(&file).await.unwrap());
    });
}

#[test]
#[ignore = "needs rqlited: make test-rqlite"]
fn each_write_on_rqlite_is_applied_once_while_leaders_are_killed_and_stopped() {
    let mut cluster = Cluster::start(None);
    let writers = Writers::start(&cluster);
    for _ in 0..2 {
        writers.wait_for_more();
        let killed = cluster.leader(None);
        cluster.kill(killed);
        cluster.leader(Some(killed));
        writers.wait_for_more();
        cluster.restart(killed);
        let stopped = cluster.leader(None);
        cluster.signal(stopped, "-STOP");
        cluster.leader(Some(stopped));
        writers.wait_for_more();
        cluster.signal(stopped, "-CONT");
        cluster.wait_for_all();
    }
    writers.check(&cluster);
}

#[test]
#[ignore = "needs rqlited: make test-rqlite"]
fn each_write_on_rqlite_is_applied_once_while_leaders_are_cut_off() {
    let Some(network) = Network::new() else {
        eprintln!("skipped: the hosts need `ip` of iproute2, and root");
        return;
    };
    let cluster = Cluster::start(Some(network));
    let network = cluster.network.as_ref().unwrap();
    let writers = Writers::start(&cluster);
    // From the others alone, so that clients still ask a leader that is none; or from its clients, too.
    for sides in [&[Side::Between][..], &[Side::Between, Side::Served], &[Side::Between]] {
        writers.wait_for_more();
        let cut = cluster.leader(None);
        sides.iter().for_each(|side| network.set(cut, *side, false));
        cluster.leader(Some(cut));
        writers.wait_for_more();
        let newest = cluster.connect_to(cut).with_level(Level::Linearizable);
        assert!(newest.query_values::<i64>(COUNTS, ()).wait().is_err(), "it cannot know the newest state");
        sides.iter().for_each(|side| network.set(cut, *side, true));
        cluster.wait_for_all();
    }
    writers.check(&cluster);
}
