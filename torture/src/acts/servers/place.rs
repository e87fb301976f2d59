//! The server, as a process, and what goes wrong with it.
//!
//! Owns: the process. Invariant: after `heal` nothing is wrong, and all that was acknowledged is there. Leaves out: its clients' calls.

use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::Duration;

use flatwater::{Live, Session};
use flatwater_remote::{Level, Libsql, Remote, RemoteOptions};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use rand::RngExt;
use rand::rngs::StdRng;
use serde::Deserialize;

use super::DOUBLE;
use crate::finding::Finding;
use crate::parts;

/// A client.
#[derive(Clone)]
pub(super) enum Client {
    Cluster(Remote),
    Libsql(Libsql),
}

impl Client {
    pub(super) fn session(&self) -> &Session {
        match self {
            Self::Cluster(remote) => remote,
            Self::Libsql(remote) => remote,
        }
    }

    /// The same, whose reads see what was acknowledged.
    pub(super) fn fresh(&self) -> Self {
        match self {
            Self::Cluster(remote) => Self::Cluster(remote.with_level(Level::Linearizable)),
            Self::Libsql(remote) => Self::Libsql(remote.clone()),
        }
    }

    pub(super) fn within(&self, time: Duration) -> Self {
        match self {
            Self::Cluster(remote) => Self::Cluster(remote.with_timeout(time)),
            Self::Libsql(remote) => Self::Libsql(remote.with_timeout(time)),
        }
    }

    pub(super) fn live(&self, sql: &str) -> Live {
        match self {
            Self::Cluster(remote) => remote.live(sql, ()),
            Self::Libsql(remote) => remote.live(sql, ()),
        }
    }

    pub(super) async fn close(self) -> flatwater::Result<()> {
        match self {
            Self::Cluster(remote) => remote.close().await,
            Self::Libsql(remote) => remote.close().await,
        }
    }
}

pub(super) enum Place {
    Double(Double),
    Sqld(Sqld),
}

/// The double of a cluster.
pub(super) struct Double {
    child: Child,
    listens: Listens,
}

#[derive(Deserialize)]
struct Listens {
    nodes: Vec<String>,
    control: String,
}

/// A libSQL server.
pub(super) struct Sqld {
    child: Child,
    program: PathBuf,
    folder: PathBuf,
    port: u16,
}

/// The process of the double.
pub(super) fn double(_: &[String]) -> ExitCode {
    rqlite_double::run();
    ExitCode::SUCCESS
}

impl Place {
    /// Starts a libSQL server if it `may_be_libsql` and there is one, and a double otherwise.
    pub(super) fn start(may_be_libsql: bool, directory: &Path) -> Result<Self, Finding> {
        if let Some(program) = std::env::var_os("SQLD").filter(|_| may_be_libsql) {
            let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
            let (program, folder) = (std::path::absolute(program)?, directory.join("sqld"));
            std::fs::create_dir_all(&folder)?;
            let child = sqld(&program, &folder, port)?;
            return Ok(Self::Sqld(Sqld { child, program, folder, port }));
        }
        let mut child = parts::part(DOUBLE).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let mut line = String::new();
        let said = child.stdout.take().ok_or_else(|| Finding::new("the double has no output"))?;
        BufReader::new(said).read_line(&mut line)?;
        let listens = serde_json::from_str(&line)?;
        Ok(Self::Double(Double { child, listens }))
    }

    pub(super) fn connect(&self) -> Result<Client, Finding> {
        let address = match self {
            Self::Double(double) => format!("rqlite://{}", double.listens.nodes.join(",")),
            Self::Sqld(sqld) => format!("libsql://127.0.0.1:{}/?tls=0", sqld.port),
        };
        let options = RemoteOptions::new(&address)?.timeout(Duration::from_secs(60));
        Ok(match self {
            Self::Double(_) => Client::Cluster(Remote::with(options.attempt_timeout(Duration::from_millis(300)))?),
            Self::Sqld(_) => Client::Libsql(Libsql::with(options.attempt_timeout(Duration::from_secs(3)))?),
        })
    }

    /// Does something to it.
    pub(super) fn disturb(&mut self, rng: &mut StdRng) -> Result<(), Finding> {
        match self {
            Self::Double(double) => match rng.random_range(0..6) {
                0 => double.order(&format!(r#"{{"leader":{}}}"#, rng.random_range(0..3))),
                1 => double.order(&format!(r#"{{"lag_ms":{}}}"#, rng.random_range(0..300))),
                2 => stopped(&double.child, Duration::from_millis(rng.random_range(1..700))),
                3 => double.order(r#"{"chance":0.0}"#),
                _ => {
                    let (seed, chance) = (rng.random_range(0..1_u64 << 40), rng.random_range(0.0..0.4));
                    double.order(&format!(r#"{{"seed":{seed},"chance":{chance:.3}}}"#))
                }
            },
            Self::Sqld(sqld) => match rng.random_range(0..20) {
                0 => sqld.restart(),
                1..=3 => stopped(&sqld.child, Duration::from_millis(rng.random_range(1..900))),
                _ => Ok(()),
            },
        }
    }

    /// Puts all right.
    pub(super) fn heal(&mut self) -> Result<(), Finding> {
        match self {
            Self::Double(double) => double.order(r#"{"chance":0.0,"clear":true,"lag_ms":0,"leader":0}"#),
            Self::Sqld(_) => Ok(()),
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let (Self::Double(Double { child, .. }) | Self::Sqld(Sqld { child, .. })) = self;
        let _ = child.kill();
        let _ = child.wait();
    }
}

impl Double {
    fn order(&self, body: &str) -> Result<(), Finding> {
        rqlite_double::order(&self.listens.control, body)?;
        Ok(())
    }
}

impl Sqld {
    fn restart(&mut self) -> Result<(), Finding> {
        self.child.kill()?;
        self.child.wait()?;
        self.child = sqld(&self.program, &self.folder, self.port)?;
        Ok(())
    }
}

fn sqld(program: &Path, folder: &Path, port: u16) -> std::io::Result<Child> {
    Command::new(program)
        .args(["--no-welcome", "--http-listen-addr", &format!("127.0.0.1:{port}"), "--db-path"])
        .arg(folder.join("db"))
        .current_dir(folder)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
}

/// Stops a process for a while.
fn stopped(child: &Child, time: Duration) -> Result<(), Finding> {
    let process = Pid::from_raw(child.id().cast_signed());
    kill(process, Signal::SIGSTOP)?;
    std::thread::sleep(time);
    kill(process, Signal::SIGCONT)?;
    Ok(())
}
