//! The stand-in for a cluster, as a child process.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

/// The word by which this program is the stand-in.
pub const CHILD: &str = "--cluster";

pub struct Double {
    child: Child,
    /// `host:port` of the leader.
    pub leader: String,
    control: String,
}

impl Double {
    pub fn start() -> Result<Self> {
        let mut child =
            Command::new(std::env::current_exe()?).arg(CHILD).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let mut line = String::new();
        BufReader::new(child.stdout.take().context("its output")?).read_line(&mut line)?;
        let listens: Value = serde_json::from_str(&line)?;
        let text = |value: &Value| value.as_str().map(str::to_owned).context("an address");
        Ok(Self { child, leader: text(&listens["nodes"][0])?, control: text(&listens["control"])? })
    }

    /// From now on a commit takes so long, and one waits for the other.
    pub fn commits_take(&self, us: u64) -> Result<()> {
        let body = json!({ "commit_us": us, "commits_queue": true }).to_string();
        let mut stream = TcpStream::connect(&self.control)?;
        write!(
            stream,
            "POST / HTTP/1.1\r\nHost: double\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        )?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        ensure!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        Ok(())
    }
}

impl Drop for Double {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
