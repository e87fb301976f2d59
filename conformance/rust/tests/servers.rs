//! All scenarios on servers: on a cluster, for which the double stands, and on a libSQL server, where `SQLD` names its program. What
//! a server does otherwise is listed in `conformance/servers.json`, with the reason, and in the docs, in a table that this makes:
//! `FLATWATER_UPDATE=1` writes it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use flatwater_conformance::format::{File, Scenario};
use flatwater_conformance::{Place, run};
use serde::Deserialize;

/// What scenarios on servers differ for.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Difference {
    on: Vec<Server>,
    reason: String,
    /// What comes of it depends on what the server does first.
    #[serde(default)]
    not_run: bool,
    scenarios: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Server {
    Rqlite,
    Libsql,
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn read<T: for<'a> Deserialize<'a>>(path: &Path) -> T {
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn scenarios() -> Vec<Scenario> {
    let entries = std::fs::read_dir(folder().join("scenarios")).expect("the folder of the scenarios");
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    let all = paths.iter().flat_map(|path| read::<File>(path).scenarios);
    all.filter(|scenario| !scenario.has_types()).collect()
}

/// The reason why a scenario is none for a server, as the driver says it.
fn is_not_there(failed: &str) -> Option<&str> {
    let begin = ["a server has no ", "a cluster has no "].iter().find_map(|begin| failed.find(begin))?;
    Some(&failed[begin..])
}

/// Tells the double that foreign keys are enforced, as in a file.
fn enforce_foreign_keys(double: &rqlite_double::Running) {
    rqlite_double::order(&double.control, r#"{"foreign_keys":true}"#).expect("it is told");
}

/// A libSQL server.
struct Sqld {
    child: Child,
    port: u16,
    _folder: tempfile::TempDir,
}

impl Sqld {
    fn start(program: &Path) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let port = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("a free port").port();
        let child = Command::new(program)
            .args(["--no-welcome", "--http-listen-addr", &format!("127.0.0.1:{port}"), "--db-path"])
            .arg(folder.path().join("db"))
            .current_dir(folder.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("sqld starts");
        Self { child, port, _folder: folder }
    }
}

impl Drop for Sqld {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn run_on(server: Server, scenario: &Scenario, sqld: Option<&Path>) -> Option<Result<(), String>> {
    Some(match server {
        Server::Rqlite => {
            let double = rqlite_double::start();
            enforce_foreign_keys(&double);
            run(scenario, &Place::Server(format!("rqlite://{}/?timeout=60s", double.nodes.join(","))))
        }
        Server::Libsql => {
            let server = Sqld::start(sqld?);
            run(scenario, &Place::Server(format!("libsql://127.0.0.1:{}/?tls=0&timeout=60s", server.port)))
        }
    })
}

/// The reasons for which each server differs, with the scenarios.
type Table = BTreeMap<String, BTreeMap<Server, BTreeSet<String>>>;

/// Runs all of them. Returns what is wrong, and the table.
fn compare(all: &[Scenario], listed: &[Difference], servers: &[Server], sqld: Option<&Path>) -> (Vec<String>, Table) {
    let (next, wrong, table) = (AtomicUsize::new(0), Mutex::new(Vec::new()), Mutex::new(Table::new()));
    let one = |server: Server, scenario: &Scenario| {
        let name = &scenario.name;
        let difference = listed.iter().find(|one| one.on.contains(&server) && one.scenarios.contains(name));
        let ran = match difference {
            Some(difference) if difference.not_run => Some(Err(difference.reason.clone())),
            _ => run_on(server, scenario, sqld),
        };
        let failed = ran.and_then(Result::err);
        let reason = match (&failed, difference) {
            (None, None) => return,
            (None, Some(_)) => Err(format!("{name} passes on {server:?}, and is listed")),
            (Some(failed), _) if is_not_there(failed).is_some() => Ok(is_not_there(failed).unwrap_or_default()),
            (Some(_), Some(difference)) => Ok(&*difference.reason),
            (Some(failed), None) => Err(format!("{name} on {server:?}: {failed}")),
        };
        match reason {
            Ok(reason) => {
                let mut table = table.lock().unwrap_or_else(PoisonError::into_inner);
                table.entry(reason.to_owned()).or_default().entry(server).or_default().insert(name.clone());
            }
            Err(is_wrong) => wrong.lock().unwrap_or_else(PoisonError::into_inner).push(is_wrong),
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while let Some(scenario) = all.get(next.fetch_add(1, Ordering::Relaxed)) {
                    servers.iter().for_each(|server| one(*server, scenario));
                }
            });
        }
    });
    (wrong.into_inner().unwrap_or_default(), table.into_inner().unwrap_or_default())
}

/// The table as it is in the docs.
fn shown(table: &Table, all: usize) -> String {
    let differ = |server: Server| table.values().filter_map(|on| on.get(&server)).map(BTreeSet::len).sum::<usize>();
    let (cluster, libsql) = (all - differ(Server::Rqlite), all - differ(Server::Libsql));
    let mut text = format!(
        "Of {all} [scenarios](../design/conformance.md) that hold on files, {cluster} hold on a cluster and {libsql} on a libSQL server. The \
         others:\n\n| why | rqlite | libSQL | scenarios |\n|---|---|---|---|\n"
    );
    for (reason, on) in table {
        let number = |server| on.get(&server).map_or_else(|| "0".to_owned(), |names| names.len().to_string());
        let names: BTreeSet<&String> = on.values().flatten().collect();
        let names: Vec<String> = names.iter().map(|name| name.replace('_', " ")).collect();
        let (cluster, libsql) = (number(Server::Rqlite), number(Server::Libsql));
        let _ = writeln!(text, "| {reason} | {cluster} | {libsql} | {} |", names.join("; "));
    }
    text
}

const BEGIN: &str = "<!-- made by conformance/rust/tests/servers.rs -->\n";

#[test]
fn a_scenario_passes_on_a_server_or_is_listed_with_its_reason() {
    let (all, listed): (_, Vec<Difference>) = (scenarios(), read(&folder().join("servers.json")));
    let names: BTreeSet<&str> = all.iter().map(|scenario| &*scenario.name).collect();
    let known = listed.iter().flat_map(|one| &one.scenarios).all(|name| names.contains(&**name));
    assert!(known, "a scenario is listed that there is not");
    let sqld = std::env::var_os("SQLD").map(|path| std::path::absolute(path).expect("a path"));
    let sqld = sqld.map(|path| if path.exists() { path } else { panic!("SQLD is {}", path.display()) });
    let servers = if sqld.is_some() { &[Server::Rqlite, Server::Libsql][..] } else { &[Server::Rqlite] };
    let (mut wrong, table) = compare(&all, &listed, servers, sqld.as_deref());
    wrong.sort();
    assert!(wrong.is_empty(), "{} are wrong:\n{}", wrong.len(), wrong.join("\n"));
    if sqld.is_none() {
        return;
    }
    let page = folder().join("../docs/guide/scaling.md");
    let text = std::fs::read_to_string(&page).expect("the page");
    let (before, is) = text.split_once(BEGIN).expect("the page has the table");
    let expected = shown(&table, all.len());
    if std::env::var_os("FLATWATER_UPDATE").is_some() {
        std::fs::write(&page, format!("{before}{BEGIN}{expected}")).expect("the page is written");
    } else {
        assert_eq!(is, expected, "run it with FLATWATER_UPDATE=1");
    }
}
