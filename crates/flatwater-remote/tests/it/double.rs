//! The double, as a child process.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use flatwater_remote::{Remote, RemoteOptions};
use serde_json::{Value, json};

pub(crate) struct Double {
    child: Child,
    pub(crate) nodes: Vec<String>,
    control: String,
}

/// The process of the double: this program again.
#[test]
#[ignore = "runs as a child of other tests"]
fn serves_until_its_input_ends() {
    if std::env::var_os(IS_CHILD).is_some() {
        rqlite_double::run();
    }
}

/// Set where this program is the double.
const IS_CHILD: &str = "FLATWATER_RQLITE_DOUBLE";

impl Double {
    pub(crate) fn start() -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--ignored", "--exact", "double::serves_until_its_input_ends", "--nocapture"])
            .env(IS_CHILD, "yes")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let listens = lines.find_map(|line| {
            let line = line.unwrap();
            serde_json::from_str::<Value>(&line[line.find('{')?..]).ok()
        });
        let listens = listens.unwrap();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let nodes = listens["nodes"].as_array().unwrap().iter().map(text).collect();
        // What it prints later is nothing.
        std::mem::forget(lines);
        Self { child, nodes, control: text(&listens["control"]) }
    }

    pub(crate) fn address(&self) -> String {
        format!("rqlite://{}", self.nodes.join(","))
    }

    /// The client of a test: a node that hangs is noticed soon, and nothing fails because the machine is busy.
    pub(crate) fn options(&self) -> RemoteOptions {
        RemoteOptions::new(&self.address())
            .unwrap()
            .attempt_timeout(Duration::from_millis(500))
            .timeout(Duration::from_secs(120))
    }

    pub(crate) fn connect(&self) -> Remote {
        Remote::with(self.options()).unwrap()
    }

    /// Gives an order, and returns what the double is at.
    pub(crate) fn order(&self, order: &Value) -> Value {
        let told = rqlite_double::order(&self.control, &order.to_string()).unwrap();
        serde_json::from_str(&told).unwrap()
    }

    /// A client that has written, and has done what follows its first write.
    pub(crate) fn settled(&self, options: RemoteOptions, schema: &str) -> Remote {
        let remote = Remote::with(options).unwrap();
        let before = self.requests();
        remote.execute(schema, ()).wait().unwrap();
        // The write without tables, the tables, the write, and the removal of what is old.
        wait_until(|| self.requests() >= before + 4);
        remote
    }

    pub(crate) fn requests(&self) -> u64 {
        self.order(&json!({}))["requests"].as_u64().unwrap()
    }
}

impl Drop for Double {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The runtime of a test's own tasks.
pub(crate) fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

/// Waits for a condition.
pub(crate) fn wait_until(mut is: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is() {
        assert!(began.elapsed() < Duration::from_secs(60), "it does not come");
        std::thread::sleep(Duration::from_millis(2));
    }
}
