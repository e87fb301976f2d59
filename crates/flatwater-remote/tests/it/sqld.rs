//! A libSQL server, as a child process, and a proxy before it that loses what passes.
//!
//! `SQLD` is the path of its program; `make test-libsql` sets it.

use std::collections::VecDeque;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use flatwater_remote::{Libsql, RemoteOptions};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use tempfile::TempDir;

use super::double::wait_until;

pub(crate) struct Sqld {
    child: Mutex<Child>,
    arguments: Vec<String>,
    pub(crate) http: u16,
    grpc: u16,
    _folder: TempDir,
}

/// A port that nothing listens on, below those that the system gives to connections.
fn free_port() -> u16 {
    loop {
        let port = rand::random_range(10_000..32_000);
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

impl Sqld {
    pub(crate) fn start() -> Self {
        Self::with(&[])
    }

    /// Starts a replica of this server.
    pub(crate) fn replica(&self) -> Self {
        Self::with(&[format!("--primary-grpc-url=http://127.0.0.1:{}", self.grpc)])
    }

    /// Starts one with several databases. Returns the port by which they are made.
    pub(crate) fn with_databases() -> (Self, u16) {
        let admin = free_port();
        let sqld = Self::with(&["--enable-namespaces".to_owned(), format!("--admin-listen-addr=127.0.0.1:{admin}")]);
        // It listens there a little later.
        wait_until(|| TcpStream::connect(("127.0.0.1", admin)).is_ok());
        (sqld, admin)
    }

    fn with(more: &[String]) -> Self {
        loop {
            // Another test may have taken the port meanwhile.
            if let Some(sqld) = Self::try_with(more) {
                return sqld;
            }
        }
    }

    fn try_with(more: &[String]) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let (http, grpc) = (free_port(), free_port());
        let mut arguments = vec![
            "--no-welcome".to_owned(),
            format!("--db-path={}", folder.path().display()),
            format!("--http-listen-addr=127.0.0.1:{http}"),
        ];
        if more.is_empty() {
            arguments.push(format!("--grpc-listen-addr=127.0.0.1:{grpc}"));
        }
        arguments.extend_from_slice(more);
        let sqld = Self { child: Mutex::new(spawn(&arguments)), arguments, http, grpc, _folder: folder };
        sqld.wait().then_some(sqld)
    }

    /// Returns false if it has ended.
    fn wait(&self) -> bool {
        let has_ended = || self.child.lock().unwrap().try_wait().unwrap().is_some();
        wait_until(|| has_ended() || TcpStream::connect(("127.0.0.1", self.http)).is_ok());
        !has_ended()
    }

    /// kill -9, and another process on the same files.
    pub(crate) fn restart(&self) {
        self.kill();
        *self.child.lock().unwrap() = spawn(&self.arguments);
        assert!(self.wait(), "it does not start again");
    }

    pub(crate) fn kill(&self) {
        let mut child = self.child.lock().unwrap();
        let _ = child.kill();
        child.wait().unwrap();
    }

    /// SIGSTOP, or SIGCONT.
    pub(crate) fn signal(&self, signal: &str) {
        let process = self.child.lock().unwrap().id().to_string();
        assert!(Command::new("kill").args([signal, &process]).status().unwrap().success());
    }

    pub(crate) fn connect(&self) -> Libsql {
        Libsql::with(options(&[self.http])).unwrap()
    }
}

fn spawn(arguments: &[String]) -> Child {
    let program = std::env::var_os("SQLD").expect("SQLD is the path of sqld");
    Command::new(program).args(arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

impl Drop for Sqld {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A server that hangs is noticed soon, and nothing fails because the machine is busy.
pub(crate) fn options(ports: &[u16]) -> RemoteOptions {
    let nodes: Vec<_> = ports.iter().map(|port| format!("127.0.0.1:{port}")).collect();
    RemoteOptions::new(&format!("libsql://{}?tls=0", nodes.join(",")))
        .unwrap()
        .attempt_timeout(Duration::from_millis(1_000))
        .timeout(Duration::from_secs(120))
}

/// What becomes of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    None,
    DropBefore,
    DropAfter,
    /// The connection ends, and the request is executed later.
    Late,
    Twice,
    HalfAnAnswer,
    Nonsense,
    ErrorAfter,
    /// It is executed, and there is no answer.
    Silence,
}

pub(crate) const ALL: &[Fault] = &[
    Fault::DropBefore,
    Fault::DropAfter,
    Fault::Late,
    Fault::Twice,
    Fault::HalfAnAnswer,
    Fault::Nonsense,
    Fault::ErrorAfter,
    Fault::Silence,
];

/// Those that are noticed at once.
pub(crate) const LOUD: &[Fault] = ALL.split_at(ALL.len() - 1).0;

/// A proxy before a server.
pub(crate) struct Proxy {
    pub(crate) port: u16,
    plan: Arc<Plan>,
}

struct Plan {
    server: u16,
    script: Mutex<VecDeque<Fault>>,
    chance: Mutex<(f64, StdRng, &'static [Fault])>,
}

impl Plan {
    fn next(&self) -> Fault {
        if let Some(fault) = self.script.lock().unwrap().pop_front() {
            return fault;
        }
        let (chance, random, faults) = &mut *self.chance.lock().unwrap();
        if random.random_bool(*chance) { faults[random.random_range(0..faults.len())] } else { Fault::None }
    }
}

impl Proxy {
    pub(crate) fn before(server: &Sqld) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let plan = Arc::new(Plan {
            server: server.http,
            script: Mutex::default(),
            chance: Mutex::new((0.0, StdRng::seed_from_u64(0), ALL)),
        });
        let theirs = plan.clone();
        std::thread::spawn(move || {
            while let Ok((stream, _)) = listener.accept() {
                let plan = theirs.clone();
                // A connection that ends in its middle ends its thread.
                std::thread::spawn(move || serve(&plan, stream));
            }
        });
        Self { port, plan }
    }

    pub(crate) fn script(&self, faults: &[Fault]) {
        *self.plan.script.lock().unwrap() = faults.iter().copied().collect();
    }

    pub(crate) fn chance(&self, chance: f64, seed: u64, faults: &'static [Fault]) {
        *self.plan.chance.lock().unwrap() = (chance, StdRng::seed_from_u64(seed), faults);
    }

    pub(crate) fn connect(&self) -> Libsql {
        Libsql::with(options(&[self.port])).unwrap()
    }
}

fn serve(plan: &Plan, stream: TcpStream) -> Option<()> {
    let mut out = stream.try_clone().ok()?;
    let mut read = BufReader::new(stream);
    loop {
        let request = message(&mut read)?;
        match plan.next() {
            Fault::None => out.write_all(&forward(plan, &request)?).ok()?,
            Fault::DropBefore => return None,
            Fault::DropAfter => {
                forward(plan, &request)?;
                return None;
            }
            Fault::Late => {
                let server = plan.server;
                std::thread::spawn(move || {
                    std::thread::sleep(Duration::from_millis(200));
                    forward_to(server, &request)
                });
                return None;
            }
            Fault::Twice => {
                forward(plan, &request)?;
                out.write_all(&forward(plan, &request)?).ok()?;
            }
            Fault::Silence => {
                forward(plan, &request)?;
                // Until the client closes the connection.
                let _ = read.read(&mut [0]);
                return None;
            }
            Fault::HalfAnAnswer => {
                let answer = forward(plan, &request)?;
                out.write_all(&answer[..answer.len() - 5]).ok()?;
                return None;
            }
            Fault::Nonsense => {
                forward(plan, &request)?;
                out.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n[{}]").ok()?;
            }
            Fault::ErrorAfter => {
                forward(plan, &request)?;
                out.write_all(b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n").ok()?;
            }
        }
    }
}

fn forward(plan: &Plan, request: &[u8]) -> Option<Vec<u8>> {
    forward_to(plan.server, request)
}

fn forward_to(server: u16, request: &[u8]) -> Option<Vec<u8>> {
    let mut stream = TcpStream::connect(("127.0.0.1", server)).ok()?;
    stream.write_all(request).ok()?;
    message(&mut BufReader::new(stream))
}

/// Reads a request or an answer, which has a length.
fn message(from: &mut BufReader<TcpStream>) -> Option<Vec<u8>> {
    let (mut whole, mut length) = (Vec::new(), 0);
    loop {
        let mut line = String::new();
        if from.read_line(&mut line).ok()? == 0 {
            return None;
        }
        whole.extend_from_slice(line.as_bytes());
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse().ok()?;
        }
        if line == "\r\n" {
            break;
        }
    }
    let head = whole.len();
    whole.resize(head + length, 0);
    from.read_exact(&mut whole[head..]).ok()?;
    Some(whole)
}
