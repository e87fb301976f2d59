//! Runs every example and checks its output.

use std::process::Command;

fn prints(program: &str, expected: &str) {
    let folder = tempfile::tempdir().expect("a folder");
    let output = Command::new(program).current_dir(folder.path()).output().expect("the program can be started");
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{program}: {}\n{err}", output.status);
    assert_eq!(out.lines().collect::<Vec<_>>(), expected.lines().map(str::trim).collect::<Vec<_>>(), "{err}");
}

#[test]
fn hello_reads_what_it_wrote() {
    prints(env!("CARGO_BIN_EXE_hello"), "hello, Ada");
}

#[test]
fn the_program_of_the_readme_is_hello() {
    let hello = include_str!("../src/bin/hello.rs");
    let (_, program) = hello.split_once("\n\n").expect("an empty line follows the head");
    let block = format!("```rust\n{program}```\n");
    assert!(include_str!("../../../README.md").contains(&block), "the README has another program than hello.rs");
}

#[test]
fn a_batch_is_all_or_nothing() {
    prints(
        env!("CARGO_BIN_EXE_batch"),
        "3 items
         order Some(1), 7 left
         refused: Constraint Some(\"SQLITE_CONSTRAINT_FOREIGNKEY\")
         1 order",
    );
}

#[test]
fn a_transfer_moves_all_or_nothing_and_outlives_its_note() {
    prints(
        env!("CARGO_BIN_EXE_transaction"),
        "moved 300, 700 left
         moved 300, 400 left
         refused: 300 missing
         [(1, 400), (2, 600)], 1 note",
    );
}

#[test]
fn closures_use_rusqlite_on_the_writer_and_on_a_reader() {
    prints(
        env!("CARGO_BIN_EXE_closures"),
        "3 rows updated
         3 words, the longest has 5 letters
         COMMIT in a closure: refused",
    );
}

#[test]
fn functions_are_on_every_connection() {
    prints(
        env!("CARGO_BIN_EXE_functions"),
        "[(\"flood\",), (\"tide\",)]
         median 5
         no such function: median",
    );
}

#[test]
fn smol_runs_a_hundred_tasks_and_a_timeout() {
    prints(
        env!("CARGO_BIN_EXE_smol"),
        "sum 5050
         Timeout, applied: Some(No)",
    );
}

#[test]
fn threads_share_the_blocking_twin() {
    prints(env!("CARGO_BIN_EXE_blocking"), "/home: 100 visits");
}

#[test]
fn a_hot_loop_reads_what_it_wrote() {
    prints(env!("CARGO_BIN_EXE_prepared"), "500500 points");
}

#[test]
fn a_stream_sees_the_events_of_its_beginning() {
    prints(
        env!("CARGO_BIN_EXE_stream"),
        "3334 clicks, 6666 views
         1 in the snapshot, 0 now",
    );
}

#[test]
fn a_live_query_shows_what_a_task_and_another_process_have_written() {
    prints(
        env!("CARGO_BIN_EXE_live"),
        "at first: []
         a task has written: [\"buy tea\", \"drink tea\"]
         another process has written: [\"drink tea\"]
         closed",
    );
}

#[test]
fn a_search_finds_what_its_filters_say() {
    prints(
        env!("CARGO_BIN_EXE_search"),
        "3: [\"it's late\", \"drink tea\", \"buy tea\"]
         1: [\"buy tea\"]
         0: []",
    );
}

#[test]
fn rows_become_json_with_lists_in_them() {
    prints(
        env!("CARGO_BIN_EXE_json"),
        r#"[{"id":1,"title":"How to \"make\" tea","words":512},{"id":9007199254740993,"title":"More tea","words":null}]
         [{"id":1,"tags":["tea","home"]},{"id":"9007199254740993","tags":[]}]
         [{"id":1,"words":600}]"#,
    );
}

#[test]
fn typed_rows_have_names_options_enums_and_json() {
    prints(
        env!("CARGO_BIN_EXE_typed"),
        "write Open [\"docs\", \"urgent\"] Ada (1)
         test Done [] nobody
         [\"test\", \"write\"], open: true
         row Some(1): column 0 (state): its TEXT cannot be read as State: it is not one of \"open\", \"done\"",
    );
}

#[test]
fn migrations_are_applied_once_and_say_what_is_wrong() {
    prints(
        env!("CARGO_BIN_EXE_migrations"),
        "applied: [\"002_names\"]
         1 note
         the database is newer than this program: it has the migration 002_names
         open
         migration 003_typo, line 2: near \"TABEL\": syntax error",
    );
}

#[test]
fn a_store_of_sessions_keeps_gives_other_ids_and_forgets() {
    prints(
        env!("CARGO_BIN_EXE_sessions"),
        "another id: true
         kept: true
         left: 1",
    );
}

#[test]
fn a_job_is_done_or_tried_again_until_it_is_dead() {
    prints(env!("CARGO_BIN_EXE_queue"), "dead: (\"bad\", 3, \"it is bad\")");
}

#[test]
fn a_value_of_the_cache_is_made_once_and_not_returned_after_its_time() {
    prints(
        env!("CARGO_BIN_EXE_cache"),
        "made
         tea
         tea
         None, 5 swept",
    );
}

#[test]
fn messages_of_the_outbox_are_sent_in_their_order_if_they_are_committed() {
    prints(
        env!("CARGO_BIN_EXE_outbox"),
        "sent 1: a
         sent 2: b
         sent 3: c",
    );
}
