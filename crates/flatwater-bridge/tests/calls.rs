//! Front calls, as an event loop makes them.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use flatwater::bindings::{FrontCall, Mailbox, Needed, Output, Polled, Target, close};
use flatwater::{Database, Error, ErrorKind, Options, Params};
use flatwater_bridge::Inbox;

/// A loop of one call at a time: how many times it was woken does not matter, which tokens it read does.
struct Loop {
    inbox: Arc<Inbox>,
    mailbox: Arc<dyn Mailbox>,
    woken: Receiver<()>,
}

impl Loop {
    fn new() -> Self {
        let (bell, woken) = channel();
        let inbox = Inbox::new(move || _ = bell.send(()));
        Self { mailbox: inbox.clone(), inbox, woken }
    }

    /// Waits until tokens were told, and returns them.
    fn read(&self) -> Vec<u64> {
        let mut tokens = Vec::new();
        while tokens.is_empty() {
            self.woken.recv_timeout(Duration::from_secs(60)).expect("the loop was not woken");
            self.inbox.read(&mut tokens);
        }
        tokens
    }

    /// Begins a call. Returns its result if it has one, or leaves the mailbox with it.
    fn begin(&self, call: &mut FrontCall, token: u64) -> Option<Result<Output, Error>> {
        loop {
            match call.poll(None) {
                Polled::Ready(result) => return Some(result),
                Polled::Yields => {}
                Polled::Part(_) => panic!("a call in parts is polled by `parts`"),
                Polled::Waits => match call.poll(Some((&self.mailbox, token))) {
                    Polled::Ready(result) => return Some(result),
                    Polled::Yields | Polled::Waits => return None,
                    Polled::Part(_) => panic!("a call in parts is polled by `parts`"),
                },
            }
        }
    }

    /// Runs a call to its end. A token of another call is passed over: one that was polled as its result arrived has its result, and its
    /// token is still on its way.
    fn run(&self, mut call: FrontCall) -> Result<Output, Error> {
        loop {
            match self.begin(&mut call, 1) {
                Some(result) => return result,
                None => while !self.read().contains(&1) {},
            }
        }
    }
}

fn params(values: &[i64]) -> Params {
    Params::positional(values).unwrap()
}

fn database(events: &Loop) -> (Database, Target) {
    let Ok(Output::Database(database)) = events.run(Options::new(":memory:").open().into()) else { panic!("it opens") };
    let target = Target::of(&database);
    assert!(matches!(events.run(target.execute("CREATE TABLE t (a)", params(&[]))), Ok(Output::Executed(_))));
    (database, target)
}

fn count(events: &Loop, target: &Target) -> i64 {
    match events.run(target.query("query", "SELECT count(*) FROM t", params(&[]), Needed::All)) {
        Ok(Output::Rows(rows)) => rows.get(0).unwrap().get(0).unwrap(),
        _ => panic!("there is a row"),
    }
}

#[test]
fn calls_are_told_and_the_order_of_their_first_polls_is_that_of_their_writes() {
    let events = Loop::new();
    let (database, target) = database(&events);
    let calls: Vec<_> = (0..100).map(|n| target.execute("INSERT INTO t VALUES (?)", params(&[n]))).collect();
    let mut waiting = HashMap::new();
    for (token, mut call) in (0..).zip(calls) {
        match events.begin(&mut call, token) {
            Some(result) => assert!(result.is_ok()),
            None => _ = waiting.insert(token, call),
        }
    }
    while !waiting.is_empty() {
        for mut call in events.read().iter().filter_map(|token| waiting.remove(token)) {
            assert!(matches!(call.poll(None), Polled::Ready(Ok(Output::Executed(_)))));
        }
    }
    let sorted = "SELECT min(a = rowid - 1) FROM t";
    let Ok(Output::Rows(rows)) = events.run(target.query("query", sorted, params(&[]), Needed::First)) else {
        panic!("a row")
    };
    assert_eq!((rows.get(0).unwrap().get::<i64>(0).unwrap(), count(&events, &target)), (1, 100));
    assert!(events.run(close(&database)).is_ok());
    assert!(events.run(target.execute("DELETE FROM t", params(&[]))).is_err());
}

#[test]
fn a_write_that_waits_is_withdrawn_and_one_from_inside_the_transaction_is_refused() {
    let events = Loop::new();
    let (_database, target) = database(&events);
    let Ok(Output::Transaction(transaction)) = events.run(target.begin(None)) else { panic!("it begins") };
    let inside = Target::of(&transaction);
    assert!(events.run(inside.execute("INSERT INTO t VALUES (?)", params(&[1]))).is_ok());
    let mut waits = target.execute("INSERT INTO t VALUES (?)", params(&[2]));
    assert!(events.begin(&mut waits, 7).is_none());
    assert!(!waits.give_up(), "nothing of it is waited for");
    let mut inner = target.execute("INSERT INTO t VALUES (?)", params(&[3]));
    inner.unbegun().unwrap().set_inside_body();
    let refused = events.run(inner);
    assert!(refused.is_err_and(|error| error.message().contains("transaction")));
    assert!(events.run(transaction.commit().into()).is_ok());
    assert_eq!(count(&events, &target), 1);
}

/// A write of a connection of one's own has begun then, and has not asked for the slot.
#[test]
fn a_write_that_is_given_up_while_its_connection_opens_is_answered() {
    let events = Loop::new();
    let folder = tempfile::tempdir().unwrap();
    let is_armed = Arc::new(AtomicBool::new(false));
    let (enters, entered) = channel();
    let (release, released) = channel::<()>();
    let (released, armed) = (Mutex::new(released), is_armed.clone());
    let options = Options::new(folder.path().join("a.db")).on_connect(move |_| {
        if armed.swap(false, Ordering::SeqCst) {
            enters.send(()).unwrap();
            released.lock().unwrap().recv().unwrap();
        }
        Ok(())
    });
    let Ok(Output::Database(database)) = events.run(options.open().into()) else { panic!("it opens") };
    let target = Target::of(&database);
    assert!(events.run(target.execute("CREATE TABLE t (a)", params(&[]))).is_ok());
    is_armed.store(true, Ordering::SeqCst);
    let connection = database.connection();
    let mut write = Target::of(&connection).execute("INSERT INTO t VALUES (?)", params(&[1]));
    assert!(events.begin(&mut write, 7).is_none());
    entered.recv().unwrap();
    assert!(write.give_up(), "it runs, and is polled on");
    release.send(()).unwrap();
    let answer = loop {
        match write.poll(Some((&events.mailbox, 7))) {
            Polled::Ready(answer) => break answer,
            Polled::Waits => assert_eq!(events.read(), [7]),
            _ => {}
        }
    };
    assert_eq!(answer.map(drop).unwrap_err().kind(), ErrorKind::Cancelled);
    assert_eq!(count(&events, &Target::of(&connection)), 0);
}

#[test]
fn a_nested_transaction_that_is_dropped_is_undone_and_the_outer_one_goes_on() {
    let events = Loop::new();
    let (_database, target) = database(&events);
    let Ok(Output::Transaction(outer)) = events.run(target.begin(None)) else { panic!("it begins") };
    let outside = Target::of(&outer);
    assert!(events.run(outside.execute("INSERT INTO t VALUES (?)", params(&[1]))).is_ok());
    let Ok(Output::Transaction(nested)) = events.run(outside.begin(None)) else { panic!("it begins") };
    assert!(events.run(Target::of(&nested).execute("INSERT INTO t VALUES (?)", params(&[2]))).is_ok());
    drop(nested);
    assert_eq!(count(&events, &outside), 1);
    assert!(events.run(outer.commit().into()).is_ok());
    assert_eq!(count(&events, &target), 1);
}

const FEW: &str = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c LIMIT 5000) SELECT n FROM c";

/// A query in parts, which has not begun.
fn in_parts(events: &Loop, sql: &str) -> (tempfile::TempDir, Database, FrontCall) {
    let folder = tempfile::tempdir().unwrap();
    let options = Options::new(folder.path().join("a.db")).readers(1);
    let Ok(Output::Database(database)) = events.run(options.open().into()) else { panic!("it opens") };
    let call = Target::of(&database).query_in_parts("query", sql, params(&[]));
    (folder, database, call)
}

/// Polls until the call is over. Returns its parts, and its end.
fn parts(events: &Loop, call: &mut FrontCall) -> (Vec<usize>, Result<Output, Error>) {
    let mut parts = Vec::new();
    loop {
        let mut polled = call.poll(None);
        if matches!(polled, Polled::Waits) {
            polled = call.poll(Some((&events.mailbox, 7)));
        }
        match polled {
            Polled::Ready(end) => return (parts, end),
            Polled::Part(rows) => parts.push(rows.len()),
            Polled::Yields => {}
            Polled::Waits => _ = events.read(),
        }
    }
}

#[test]
fn the_parts_of_a_result_come_before_its_last_rows() {
    let events = Loop::new();
    let (_folder, _database, mut call) = in_parts(&events, FEW);
    let (parts, end) = parts(&events, &mut call);
    // A first part of 1,536 cells, and others of 3,072, of which the last comes with the reply.
    assert_eq!(parts, [1_536, 3_072]);
    let Ok(Output::Rows(last)) = end else { panic!("there are more rows") };
    assert_eq!((last.len(), last.get(0).unwrap().get::<i64>(0).unwrap()), (392, 4_609));
}

#[test]
fn a_caller_gets_parts_while_the_query_runs_and_interrupts_it() {
    let events = Loop::new();
    let endless =
        "SELECT count(*) FROM (WITH RECURSIVE d(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM d) SELECT n FROM d)";
    let (_folder, database, mut call) = in_parts(&events, &format!("{FEW} UNION ALL {endless}"));
    let mut rows = 0;
    while rows < 4_608 {
        match call.poll(Some((&events.mailbox, 7))) {
            Polled::Part(part) => rows += part.len(),
            Polled::Waits => assert_eq!(events.read(), [7]),
            Polled::Yields => {}
            Polled::Ready(_) => panic!("the query ended"),
        }
    }
    assert!(!call.give_up(), "a read is not waited for");
    drop(call);
    // The only reader is free again.
    let target = Target::of(&database);
    assert!(
        matches!(events.run(target.query("query", FEW, params(&[]), Needed::All)), Ok(Output::Rows(rows)) if rows.len() == 5_000)
    );
}

#[test]
fn a_query_that_fails_ends_with_its_error_whatever_parts_it_had() {
    let events = Loop::new();
    let (_folder, _database, mut call) =
        in_parts(&events, &format!("{FEW} UNION ALL SELECT abs(-9223372036854775807 - 1)"));
    let (_, end) = parts(&events, &mut call);
    assert!(end.is_err_and(|error| error.message().contains("overflow")));
}
