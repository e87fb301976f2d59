//! The servers, as child processes: the stand-in for a cluster, and a libSQL server if `SQLD` is the path of its program.

use std::io::{BufRead as _, BufReader};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tempfile::TempDir;

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
        rqlite_double::order(&self.control, &body)?;
        Ok(())
    }
}

impl Drop for Double {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A libSQL server.
pub struct Sqld {
    child: Child,
    /// `host:port`.
    pub node: String,
    _folder: TempDir,
}

impl Sqld {
    /// Returns true if its program is known.
    pub fn is_there() -> bool {
        std::env::var_os("SQLD").is_some_and(|path| !path.is_empty())
    }

    pub fn start() -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let node = TcpListener::bind("127.0.0.1:0")?.local_addr()?.to_string();
        let child = Command::new(std::env::var_os("SQLD").context("SQLD is the path of sqld")?)
            .args(["--no-welcome".to_owned(), format!("--db-path={}", folder.path().display())])
            .arg(format!("--http-listen-addr={node}"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let mut sqld = Self { child, node, _folder: folder };
        while TcpStream::connect(&sqld.node).is_err() {
            ensure!(sqld.child.try_wait()?.is_none(), "sqld has ended");
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(sqld)
    }
}

impl Drop for Sqld {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The server of a lane.
pub enum Server {
    Double(Double),
    Sqld(Sqld),
}

impl Server {
    /// Where it is, for Flatwater.
    pub fn address(&self) -> String {
        match self {
            Self::Double(double) => format!("rqlite://{}", double.leader),
            Self::Sqld(sqld) => format!("libsql://{}/?tls=0", sqld.node),
        }
    }
}
