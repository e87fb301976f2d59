//! A process that has the turn forks, and is killed: the child has inherited the locks of its ticket and of the file, and
//! may live for long. The others go on, and the file is removed when the child has ended.

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use flatwater::{Database, Error, Options};
use flatwater_sqlite::TurnFile;

use crate::support::{TestFile, rows, wait_until};

const PATH: &str = "FLATWATER_TURNS_PATH";
/// A child that nobody ends is ended by the kernel.
const WATCHDOG_SECONDS: u32 = 600;
/// More than fit into a turn.
const SOME: i64 = 200;

fn path() -> PathBuf {
    std::env::var_os(PATH).expect("the parent says where").into()
}

fn insert(db: &Database) {
    let me = i64::from(std::process::id());
    db.execute("INSERT INTO t VALUES (?)", (me,)).wait().unwrap();
}

#[test]
#[ignore = "runs as a child of the test below"]
fn writes_until_it_is_told_to_stop() {
    let db = Options::new(path()).open().wait().unwrap();
    while !path().with_file_name("stop").exists() {
        (0..10).for_each(|_| insert(&db));
    }
    db.close().wait().unwrap();
}

#[test]
#[ignore = "runs as a child of the test below"]
fn forks_in_its_turn_and_waits() {
    let db = Options::new(path()).open().wait().unwrap();
    loop {
        let (before, seen) = (db.stats().turns.taken, db.clone());
        let in_turn = db.write_with(move |_| {
            // The turn that was taken for this call lasts until it ends.
            if seen.stats().turns.taken > before {
                forks_and_waits();
            }
            Ok::<_, Error>(())
        });
        in_turn.wait().unwrap();
        insert(&db);
    }
}

fn forks_and_waits() -> ! {
    // SAFETY: the child makes plain system calls only, until it is killed or the alarm ends it.
    match unsafe { libc::fork() } {
        0 => loop {
            // SAFETY: as above.
            unsafe {
                libc::alarm(WATCHDOG_SECONDS);
                libc::pause();
            }
        },
        -1 => panic!("no child: {}", std::io::Error::last_os_error()),
        child => {
            println!("\nforked: {child}");
            std::io::stdout().flush().unwrap();
            loop {
                std::thread::park();
            }
        }
    }
}

fn start(file: &TestFile, test: &str, stdout: Stdio) -> Killed {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--ignored", "--nocapture"]).env(PATH, file.path());
    Killed(command.stdout(stdout).spawn().unwrap())
}

struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The child of a process that is dead.
struct Orphan(libc::pid_t);

impl Drop for Orphan {
    fn drop(&mut self) {
        // SAFETY: sends a signal.
        unsafe { libc::kill(self.0, libc::SIGKILL) };
    }
}

#[test]
fn a_forked_child_of_one_that_had_the_turn_and_was_killed_holds_up_nobody() {
    let file = TestFile::new();
    let (turn_file, stop) = (file.path().with_file_name("test.db-turn"), file.path().with_file_name("stop"));
    let start_writers = || [(); 3].map(|()| start(&file, "turns::writes_until_it_is_told_to_stop", Stdio::null()));
    let plain = file.plain();
    let progress = |writers: &[Killed]| {
        let count = |writer: &Killed| {
            let of = format!("SELECT count(*) FROM t WHERE a = {}", writer.0.id());
            plain.query_row(&of, [], |row| row.get::<_, i64>(0)).unwrap()
        };
        let before: Vec<_> = writers.iter().map(count).collect();
        wait_until(|| writers.iter().zip(&before).all(|(writer, before)| count(writer) >= before + SOME));
    };
    let ends = |writers: [Killed; 3]| {
        std::fs::write(&stop, "").unwrap();
        for mut writer in writers {
            assert!(writer.0.wait().unwrap().success());
        }
        std::fs::remove_file(&stop).unwrap();
    };
    let writers = start_writers();
    let mut forks = start(&file, "turns::forks_in_its_turn_and_waits", Stdio::piped());
    let said = BufReader::new(forks.0.stdout.take().unwrap()).lines().map(Result::unwrap);
    let number = said.filter_map(|line| line.strip_prefix("forked: ")?.parse().ok()).next();
    let orphan = Orphan(number.expect("it says when it has forked"));
    let before = rows(&plain);
    drop(forks);
    progress(&writers);
    assert!(rows(&plain) > before);
    ends(writers);
    // The child has the ticket yet, and others take turns beside it.
    let opened = TurnFile::open(&turn_file, &file.path(), false).unwrap().unwrap();
    assert!(opened.is_held(0, u32::MAX).unwrap());
    let writers = start_writers();
    progress(&writers);
    ends(writers);
    drop(orphan);
    wait_until(|| !opened.is_held(0, u32::MAX).unwrap());
    drop(opened);
    let writers = start_writers();
    progress(&writers);
    ends(writers);
    assert!(!turn_file.exists());
}
