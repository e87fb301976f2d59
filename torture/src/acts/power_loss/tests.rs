//! Tests that the model of the disk behaves as described, and that the judge finds what it must.

use std::collections::BTreeMap;

use rand::SeedableRng;
use rand::rngs::StdRng;
use rusqlite::types::Value;

use super::Files;
use super::content::Content;
use super::disk::Disk;
use super::image::{Choice, Fate, Manner};
use super::judge::Judge;
use super::log::{DIRECTORY, Log};
use super::plan::{ACCOUNTS, Plan, Step};
use super::said::{Floor, Found};

const CREATE: u8 = 2;
const WRITE: u8 = 3;
const TRUNCATE: u8 = 4;
const BEGIN: u8 = 5;
const END: u8 = 6;
const FAILED: u8 = 7;
const UNLINK: u8 = 8;
const TOLD: u8 = 10;

/// Builds a log as the recorder writes it.
fn log(records: &[(u8, u32, u64, &[u8])]) -> Log {
    let mut bytes = Vec::new();
    for (kind, file, number, data) in records {
        bytes.push(*kind);
        bytes.extend(file.to_ne_bytes());
        bytes.extend(number.to_ne_bytes());
        bytes.extend(u32::try_from(data.len()).unwrap().to_ne_bytes());
        bytes.extend(*data);
    }
    Log::of(bytes).expect("it is a log")
}

fn end(log: &Log) -> Disk<'_> {
    let mut disk = Disk::new(log, &Files::new());
    disk.go_to(log.entries.len());
    disk
}

fn image(disk: &Disk<'_>, manner: Manner) -> Files {
    Choice::make(disk, manner, &mut StdRng::seed_from_u64(1)).build(disk)
}

fn only(name: &str, content: &[u8]) -> Files {
    BTreeMap::from([(name.to_owned(), content.to_vec())])
}

/// Creates a file `f` and syncs its name.
const MADE: [(u8, u32, u64, &[u8]); 3] = [(CREATE, 1, 0, b"f"), (BEGIN, DIRECTORY, 1, b""), (END, DIRECTORY, 1, b"")];

#[test]
fn a_sync_covers_what_was_written_before_it_began() {
    let during: [(u8, u32, u64, &[u8]); 4] =
        [(WRITE, 1, 0, b"ab"), (BEGIN, 1, 2, b""), (WRITE, 1, 2, b"c"), (END, 1, 2, b"")];
    let log = log(&[&MADE[..], &during].concat());
    let disk = end(&log);
    assert_eq!(image(&disk, Manner::AllDropped), only("f", b"ab"));
    assert_eq!(image(&disk, Manner::AllKept), only("f", b"abc"));
}

#[test]
fn a_sync_that_failed_covers_nothing_and_neither_does_the_next_one() {
    let failed: [(u8, u32, u64, &[u8]); 6] = [
        (WRITE, 1, 0, b"abc"),
        (BEGIN, 1, 2, b""),
        (FAILED, 1, 2, b""),
        (WRITE, 1, 2, b"X"),
        (BEGIN, 1, 3, b""),
        (END, 1, 3, b""),
    ];
    let log = log(&[&MADE[..], &failed].concat());
    let disk = end(&log);
    assert_eq!(image(&disk, Manner::AllDropped), only("f", b"\0\0X"));
    assert_eq!(image(&disk, Manner::AllKept), only("f", b"abX"), "what was written later lies over it");
}

#[test]
fn a_sync_that_tells_of_another_covers_nothing_and_the_next_one_does() {
    let told: [(u8, u32, u64, &[u8]); 3] = [(WRITE, 1, 0, b"abc"), (BEGIN, 1, 2, b""), (TOLD, 1, 2, b"")];
    let first = log(&[&MADE[..], &told].concat());
    assert_eq!(image(&end(&first), Manner::AllDropped), only("f", b""));
    let next: [(u8, u32, u64, &[u8]); 2] = [(BEGIN, 1, 3, b""), (END, 1, 3, b"")];
    let second = log(&[&MADE[..], &told, &next].concat());
    assert_eq!(image(&end(&second), Manner::AllDropped), only("f", b"abc"));
}

#[test]
fn a_truncation_is_undone_and_a_file_comes_back_until_it_is_synced() {
    let gone: [(u8, u32, u64, &[u8]); 5] =
        [(WRITE, 1, 0, b"old"), (BEGIN, 1, 2, b""), (END, 1, 2, b""), (TRUNCATE, 1, 1, b""), (UNLINK, 1, 0, b"f")];
    let made: [(u8, u32, u64, &[u8]); 2] = [(CREATE, 2, 0, b"f"), (WRITE, 2, 0, b"new")];
    let log = log(&[&MADE[..], &gone, &made].concat());
    let disk = end(&log);
    assert_eq!(image(&disk, Manner::AllDropped), only("f", b"old"));
    assert_eq!(image(&disk, Manner::AllKept), only("f", b"new"));
    let back = |version| Choice { back: BTreeMap::from([("f".to_owned(), version)]), ..Choice::default() };
    assert_eq!(back(0).build(&disk), only("f", b"o"));
    assert_eq!(back(1).build(&disk), Files::new());
}

#[test]
fn a_new_file_has_no_name_until_the_directory_is_synced() {
    let records: [(u8, u32, u64, &[u8]); 4] =
        [(CREATE, 1, 0, b"f"), (WRITE, 1, 0, b"a"), (BEGIN, 1, 1, b""), (END, 1, 1, b"")];
    let unsynced = log(&records);
    assert_eq!(image(&end(&unsynced), Manner::AllDropped), Files::new());
    let synced = log(&[&records[..], &MADE[1..]].concat());
    assert_eq!(image(&end(&synced), Manner::AllDropped), only("f", b"a"));
}

#[test]
fn a_write_is_torn_at_sectors_of_the_file() {
    let data = [7; 1_000];
    let log = log(&[&MADE[..], &[(WRITE, 1, 500, &data[..])]].concat());
    let disk = end(&log);
    let torn = |sectors: [bool; 3]| {
        let choice = Choice { lost: BTreeMap::from([(3, Fate::Torn(sectors.to_vec()))]), ..Choice::default() };
        choice.build(&disk)["f"].clone()
    };
    let written = |from: usize, to: usize| [vec![0; from], vec![7; to - from]].concat();
    assert_eq!(torn([true, false, false]), written(500, 512));
    assert_eq!(torn([false, true, false]), written(512, 1_024));
    assert_eq!(torn([false, false, true]), written(1_024, 1_500));
    assert_eq!(torn([true, true, true]), written(500, 1_500));
}

/// Returns a plan, some of its steps that write one row or many, and the content that they produce.
fn plain_steps() -> (Plan, Vec<(u64, u64)>, Content) {
    let plan = Plan::of(3);
    let is_plain = |step: &u64| matches!(plan.step(0, *step), Step::Row | Step::Many(_));
    let ids: Vec<_> = (1..40).filter(is_plain).map(|step| (0, step)).collect();
    let mut ledger = Vec::new();
    for (task, step) in &ids {
        let parts = plan.parts(*task, *step);
        for part in 0..parts {
            let n = ledger.len() as u64 + 1;
            let mut row: Vec<_> = [n, *task, *step, part, parts].iter().map(|n| Value::Integer(*n as i64)).collect();
            row.push(Value::Blob(plan.filler(*task, *step, part)));
            ledger.push(row);
        }
    }
    let accounts = (0..ACCOUNTS).map(|id| vec![Value::Integer(id as i64), Value::Integer(0)]).collect();
    let main = [("accounts", accounts), ("bodies", Vec::new()), ("ledger", ledger)];
    let main = main.into_iter().map(|(name, rows)| (name.to_owned(), rows)).collect();
    (plan.without_side(), ids, Content { main, side: Vec::new() })
}

#[test]
fn the_judge_takes_what_is_right_and_sees_what_is_not() {
    let (plan, ids, content) = plain_steps();
    let floor = Floor::before(&Found { is_made: true, main: ids.iter().copied().collect(), ..Found::default() });
    let judge = Judge { plan: &plan, ever: &floor };
    let said = |content: &Content, floor: &Floor| judge.check(content, floor).map(drop).map_err(|found| found.what);
    assert_eq!(said(&content, &floor), Ok(()));
    let changed = |change: fn(&mut Content)| {
        let mut content = content.clone();
        change(&mut content);
        said(&content, &floor).unwrap_err()
    };
    assert!(changed(|content| content.main[2].1.clear()).contains("acknowledged and lost"));
    assert!(changed(|content| content.main.clear()).contains("schema is not there"));
    assert!(changed(|content| drop(content.main[2].1.remove(3))).contains("not as written"));
    assert!(changed(|content| content.main[0].1[4][1] = Value::Integer(1)).contains("accounts"));
    assert!(changed(|content| content.main.push(("own_0".to_owned(), Vec::new()))).contains("tables"));
    let refused = Floor { refused: floor.main.clone(), ..Floor::default() };
    assert!(said(&content, &refused).unwrap_err().contains("answered as not done"));
}

#[test]
fn a_prefix_is_right_where_nothing_had_to_stay() {
    let (plan, ids, mut content) = plain_steps();
    let ever = Floor::before(&Found { is_made: true, main: ids.iter().copied().collect(), ..Found::default() });
    let first = plan.parts(0, ids[0].1) as usize;
    content.main[2].1.truncate(first);
    let judge = Judge { plan: &plan, ever: &ever };
    assert_eq!(judge.check(&content, &Floor::default()).unwrap().main.len(), 1);
    if plan.parts(0, ids[0].1) > 1 {
        content.main[2].1.pop();
        assert!(judge.check(&content, &Floor::default()).is_err(), "half of a step");
    }
}
