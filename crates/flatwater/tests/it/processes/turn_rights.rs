//! Processes that write and may not make the file `<db>-turn`, or not open it: they poll, beside the others. And what the
//! rights of the file are.
//!
//! Some tests are about several users. They are run by root, or test less.

use std::fs::{Permissions, metadata, set_permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};

use flatwater_sqlite::TurnFile;

use super::writers::{Writers, has_open, is_file, writes_until};
use crate::support::{is_alone_in_process, nobody, wait_until};

#[test]
fn in_a_directory_that_may_not_be_written_processes_poll() {
    let test = "processes::turn_rights::in_a_directory_that_may_not_be_written_processes_poll";
    if !is_alone_in_process(test, nobody()) {
        return;
    }
    let mut writers = Writers::start(0);
    let directory = writers.file.directory().to_owned();
    // The files beside the database are there, and stay.
    let plain = writers.file.plain();
    plain.execute_batch("INSERT INTO turns VALUES (0)").unwrap();
    set_permissions(&directory, Permissions::from_mode(0o555)).unwrap();
    std::fs::write(directory.join("x"), b"").expect_err("this test must not run as root");
    (0..2).for_each(|_| writers.start_another(true));
    let db = writers.file.options().open().wait().unwrap();
    writes_until(&db, || db.stats().turns.failures > 0);
    writers.progress(&[0, 1]);
    assert_eq!(db.stats().turns.taken, 0);
    assert!(!writers.turn_file().exists());
    set_permissions(&directory, Permissions::from_mode(0o755)).unwrap();
    db.close().wait().unwrap();
    writers.end();
}

#[test]
fn where_something_else_is_at_its_path_processes_poll_and_it_stays() {
    let mut writers = Writers::start(0);
    let turn_file = writers.turn_file();
    std::fs::create_dir(&turn_file).unwrap();
    (0..2).for_each(|_| writers.start_another(true));
    let db = writers.file.options().open().wait().unwrap();
    writes_until(&db, || db.stats().turns.failures > 0);
    writers.progress(&[0, 1]);
    assert_eq!(db.stats().turns.taken, 0);
    db.close().wait().unwrap();
    let _file = writers.end();
    assert!(turn_file.is_dir());
}

#[test]
fn it_has_the_owner_and_the_mode_of_the_database() {
    let mut writers = Writers::start(0);
    let (database, turn_file) = (writers.file.path(), writers.turn_file());
    set_permissions(&database, Permissions::from_mode(0o660)).unwrap();
    if let Some(nobody) = nobody() {
        chown(&database, Some(nobody), Some(nobody)).unwrap();
        set_permissions(writers.file.directory(), Permissions::from_mode(0o777)).unwrap();
    }
    (0..2).for_each(|_| writers.start_another(true));
    wait_until(|| is_file(&turn_file));
    let rights = |path| metadata(path).map(|of| (of.mode() & 0o777, of.uid(), of.gid())).unwrap();
    assert_eq!(rights(&turn_file), rights(&database));
    // So the other user takes turns, too.
    if let Some(nobody) = nobody() {
        let other = writers.start_as(nobody);
        wait_until(|| has_open(other, &turn_file));
    }
    let all = writers.all();
    writers.progress(&all);
    writers.end();
}

#[test]
fn a_user_who_may_not_open_it_polls_beside_those_who_take_turns() {
    let Some(nobody) = nobody() else { return };
    let mut writers = Writers::start(0);
    let (database, turn_file) = (writers.file.path(), writers.turn_file());
    set_permissions(writers.file.directory(), Permissions::from_mode(0o777)).unwrap();
    for file in [&database, &writers.file.beside("-wal"), &writers.file.beside("-shm")] {
        set_permissions(file, Permissions::from_mode(0o666)).unwrap();
    }
    // As one leaves it who gives the database other rights while it is in use.
    let made = TurnFile::open(&turn_file, &database, true).unwrap().unwrap();
    set_permissions(&turn_file, Permissions::from_mode(0o600)).unwrap();
    (0..2).for_each(|_| writers.start_another(true));
    let other = writers.start_as(nobody);
    let all = writers.all();
    for _ in 0..3 {
        writers.progress(&all);
        assert!(!has_open(other, &turn_file));
    }
    let of_root = writers.children[0].0.id();
    wait_until(|| has_open(of_root, &turn_file));
    writers.lets_go(&made);
    drop(made);
    writers.end();
}
