//! Large values that are read and written in parts: of the newest commit, of a transaction, and of a snapshot.

use std::io::SeekFrom;

use flatwater::calls::CheckpointMode;
use flatwater::options::Journal;
use flatwater::{Database, ErrorKind, Options, Session};

use crate::place::{Place, in_both_places};
use crate::support::{TestFile, integer, run, until};

in_both_places!(
    a_value_is_read_and_written_in_parts,
    a_position_outside_is_refused_and_changes_nothing,
    what_is_no_blob_is_refused_with_a_sentence,
    writes_in_a_transaction_are_its_own,
    a_blob_of_an_outer_transaction_leaves_the_nested_one_alone,
    a_snapshot_reads_and_never_writes,
    a_value_that_was_replaced_is_not_used,
    live_queries_of_the_column_run_again,
);

const SIZE: usize = 300_000;

fn content(at: usize) -> u8 {
    (at * 7 % 251) as u8
}

async fn files(options: Options) -> Database {
    let db = options.open().await.unwrap();
    db.execute_script(
        "CREATE TABLE Files (id INTEGER PRIMARY KEY, Data BLOB, name TEXT, indexed BLOB);
         CREATE INDEX by_indexed ON files (indexed); CREATE TABLE other (a)",
    )
    .await
    .unwrap();
    let data: Vec<u8> = (0..SIZE).map(content).collect();
    db.execute("INSERT INTO files VALUES (1, ?, 'a name', x'00')", (data,)).await.unwrap();
    db
}

async fn data(of: &Session) -> Vec<u8> {
    of.query_value("SELECT data FROM files WHERE id = 1", ()).await.unwrap()
}

async fn a_value_is_read_and_written_in_parts(place: &Place) {
    let db = files(place.options()).await;
    let mut blob = db.open_blob("files", "data", 1).await.unwrap();
    assert_eq!((blob.len(), blob.position(), blob.is_empty()), (SIZE, 0, false));
    let (mut buffer, mut read) = (vec![0; 70_000], Vec::<u8>::new());
    loop {
        match blob.read(&mut buffer).await.unwrap() {
            0 => break,
            bytes => read.extend(&buffer[..bytes]),
        }
    }
    assert!(read.iter().enumerate().all(|(at, byte)| *byte == content(at)) && read.len() == SIZE);
    assert_eq!(blob.position(), SIZE);
    assert_eq!(blob.seek(SeekFrom::End(-3)).unwrap(), SIZE - 3);
    blob.write(b"end").await.unwrap();
    assert_eq!((blob.position(), blob.seek(SeekFrom::Start(10)).unwrap()), (SIZE, 10));
    blob.write(b"ten").await.unwrap();
    assert_eq!(blob.seek(SeekFrom::Current(-2)).unwrap(), 11);
    assert_eq!(blob.read_at(9, 5).await.unwrap(), [content(9), b't', b'e', b'n', content(13)]);
    assert_eq!((blob.read_at(SIZE - 2, 100).await.unwrap(), blob.position()), (b"nd".to_vec(), 11));
    let now = data(&db).await;
    assert!(now.len() == SIZE && now[10..13] == *b"ten" && now[SIZE - 3..] == *b"end");
    let text = db.open_blob("FILES", "Name", 1).await.unwrap();
    assert_eq!(text.read_at(2, 4).await.unwrap(), b"name");
}

async fn a_position_outside_is_refused_and_changes_nothing(place: &Place) {
    let db = files(place.options()).await;
    let mut blob = db.open_blob("files", "name", 1).await.unwrap();
    for outside in [
        SeekFrom::Start(7),
        SeekFrom::Start(u64::MAX),
        SeekFrom::End(1),
        SeekFrom::Current(-1),
        SeekFrom::End(i64::MIN),
    ] {
        let error = blob.seek(outside).unwrap_err();
        assert_eq!((error.kind(), blob.position()), (ErrorKind::Misuse, 0), "{outside:?}");
    }
    for (at, bytes) in [(0, "longer!"), (6, "x"), (usize::MAX, "x"), (7, "")] {
        let error = blob.write_at(at, bytes).await.unwrap_err();
        assert_eq!((error.kind(), error.operation()), (ErrorKind::Misuse, Some("write_blob")), "{at}: {error}");
        assert!(error.message().contains("6 bytes") && error.hint().unwrap().contains("zeroblob"), "{error}");
    }
    assert_eq!(blob.read_at(7, 1).await.unwrap(), b"", "as of a file");
    assert_eq!(blob.read_at(usize::MAX, usize::MAX).await.unwrap(), b"");
    assert_eq!(blob.read_at(0, usize::MAX).await.unwrap(), b"a name");
    blob.write_at(6, "").await.unwrap();
}

async fn what_is_no_blob_is_refused_with_a_sentence(place: &Place) {
    let db = files(place.options()).await;
    db.execute_script(
        "CREATE VIEW v AS SELECT * FROM files; CREATE TABLE w (a PRIMARY KEY, b) WITHOUT ROWID;
         CREATE VIRTUAL TABLE f USING fts5 (x); CREATE TABLE g (a, b AS (a)); INSERT INTO other VALUES (NULL), (5), (1.5)",
    )
    .await
    .unwrap();
    for (table, column, says) in [
        ("nothing", "a", "no such table"),
        ("files", "nothing", "no such column"),
        ("v", "data", "cannot open view"),
        ("w", "b", "without rowid"),
        ("f", "x", "virtual table"),
        ("g", "a", "generated columns"),
        ("other", "a", "type null"),
    ] {
        let error = db.open_blob(table, column, 1).await.unwrap_err();
        assert_eq!((error.kind(), error.operation()), (ErrorKind::Sql, Some("open_blob")), "{table}: {error}");
        assert!(error.message().contains(says), "{error}");
        assert_eq!(error.hint().is_some(), says.contains("cannot open") || !says.starts_with("no such"), "{error}");
    }
    let error = db.open_blob("other", "a", 2).await.unwrap_err();
    assert!(error.hint().unwrap().contains("zeroblob"), "{error}");
    let error = db.open_blob("files", "data", 987_654).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::RowNotFound);
    assert!(!error.message().contains("987654"), "a rowid is a value: {error}");
    assert_eq!(db.open_blob(("nowhere", "files"), "data", 1).await.unwrap_err().kind(), ErrorKind::Sql);
    assert_eq!(db.open_blob("fi\0les", "data", 1).await.unwrap_err().kind(), ErrorKind::Misuse);
    let blob = db.open_blob("files", "indexed", 1).await.unwrap();
    assert!(blob.write_at(0, [1]).await.unwrap_err().message().contains("indexed"));
    let schema = db.open_blob("sqlite_schema", "sql", 1).await.unwrap();
    assert_eq!(schema.write_at(0, [b'D']).await.unwrap_err().kind(), ErrorKind::Misuse);
}

async fn writes_in_a_transaction_are_its_own(place: &Place) {
    let db = files(place.options()).await;
    let tx = db.begin().await.unwrap();
    let rowid: i64 = tx.query_value("INSERT INTO files (data) VALUES (zeroblob(8)) RETURNING id", ()).await.unwrap();
    let mut blob = tx.open_blob("files", "data", rowid).await.unwrap();
    blob.write(b"abcd").await.unwrap();
    blob.write(b"efgh").await.unwrap();
    assert_eq!(blob.read_at(2, 4).await.unwrap(), b"cdef");
    let outer = tx.open_blob("files", "data", 1).await.unwrap();
    outer.write_at(0, b"kept".to_vec()).await.unwrap();
    tx.execute("SAVEPOINT_", ()).await.unwrap_err();
    assert_eq!(blob.write_at(6, b"too long".to_vec()).await.unwrap_err().kind(), ErrorKind::Misuse, "it goes on");
    tx.commit().await.unwrap();
    assert_eq!(blob.read_at(0, 1).await.unwrap_err().kind(), ErrorKind::Misuse, "the transaction is over");
    let (kept, new): (Vec<u8>, Vec<u8>) = db
        .query_one_as(
            "SELECT substr(data, 1, 4), (SELECT data FROM files WHERE id = ?) FROM files WHERE id = 1",
            (rowid,),
        )
        .await
        .unwrap();
    assert_eq!((kept, new), (b"kept".to_vec(), b"abcdefgh".to_vec()));

    let tx = db.begin().await.unwrap();
    tx.open_blob("files", "data", 1).await.unwrap().write_at(0, b"lost".to_vec()).await.unwrap();
    drop(tx);
    assert_eq!(data(&db).await[..4], *b"kept");
}

async fn a_blob_of_an_outer_transaction_leaves_the_nested_one_alone(place: &Place) {
    let db = files(place.options()).await;
    let mut tx = db.begin().await.unwrap();
    let earlier = tx.begin().await.unwrap();
    earlier.rollback().await.unwrap();
    let outer = tx.open_blob("files", "data", 1).await.unwrap();
    let nested = tx.begin().await.unwrap();
    nested.execute("INSERT INTO other VALUES (1)", ()).await.unwrap();
    let refused = outer.write_at(0, b"both".to_vec()).await.unwrap_err();
    assert!(refused.kind() == ErrorKind::Misuse && refused.message().contains("nested"), "{refused}");
    nested.execute("INSERT INTO other VALUES (2)", ()).await.unwrap();
    nested.commit().await.unwrap();
    outer.write_at(0, b"both".to_vec()).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(db.query_value::<i64>("SELECT count(*) FROM other", ()).await.unwrap(), 2);
    assert_eq!(data(&db).await[..4], *b"both");
}

async fn a_snapshot_reads_and_never_writes(place: &Place) {
    let db = files(place.options()).await;
    let snapshot = db.snapshot().await.unwrap();
    let before = snapshot.open_blob("files", "data", 1).await.unwrap();
    assert_eq!(before.write_at(0, [1]).await.unwrap_err().kind(), ErrorKind::Misuse);
    if place.has_readers() {
        db.execute("UPDATE files SET data = x'00'", ()).await.unwrap();
    }
    assert_eq!(before.read_at(5, 2).await.unwrap(), [content(5), content(6)]);
    drop(snapshot);
    assert_eq!(before.read_at(5, 2).await.unwrap_err().kind(), ErrorKind::Misuse);
}

async fn a_value_that_was_replaced_is_not_used(place: &Place) {
    let db = files(place.options()).await;
    let blob = db.open_blob("files", "data", 1).await.unwrap();
    db.execute("UPDATE files SET data = randomblob(?)", (SIZE as i64,)).await.unwrap();
    assert_eq!(blob.read_at(0, SIZE).await.unwrap(), data(&db).await, "it has the same length");
    db.execute("UPDATE files SET data = x'0102'", ()).await.unwrap();
    for error in [blob.read_at(0, 1).await.unwrap_err(), blob.write_at(0, [9]).await.unwrap_err()] {
        assert_eq!(error.kind(), ErrorKind::Misuse);
        assert!(error.message().contains("it had 300000 bytes, and has 2"), "{error}");
    }
    assert_eq!(data(&db).await, [1, 2]);
    db.execute("DELETE FROM files", ()).await.unwrap();
    assert_eq!(blob.read_at(0, 1).await.unwrap_err().kind(), ErrorKind::RowNotFound);
    db.execute_script("DROP TABLE files; CREATE TABLE files (id INTEGER PRIMARY KEY, more, data)").await.unwrap();
    db.execute("INSERT INTO files VALUES (1, 0, zeroblob(?))", (SIZE as i64,)).await.unwrap();
    blob.write_at(1, [7]).await.unwrap();
    assert_eq!(blob.read_at(0, 3).await.unwrap(), [0, 7, 0], "the names are looked up anew");
}

async fn live_queries_of_the_column_run_again(place: &Place) {
    let db = files(place.options()).await;
    let mut live = db.live("SELECT substr(data, 1, 3) FROM files WHERE id = 1", ());
    let mut other = db.live("SELECT name FROM files", ());
    live.next().await.unwrap().unwrap();
    other.next().await.unwrap().unwrap();
    let runs = db.stats().live.runs;
    db.open_blob("FILES", "DATA", 1).await.unwrap().write_at(0, b"new".to_vec()).await.unwrap();
    let rows = live.next().await.unwrap().unwrap();
    assert_eq!(rows.iter().next().unwrap().get::<Vec<u8>>(0).unwrap(), b"new");
    until(|| db.stats().live.runs > runs).await;
    assert_eq!(db.stats().live.runs, runs + 1, "the column of the other one was not written");
}

#[test]
fn an_open_blob_holds_no_reader_and_no_snapshot() {
    let file = TestFile::new();
    run(async {
        let db = files(file.options()).await;
        let blob = db.open_blob("files", "data", 1).await.unwrap();
        assert_eq!(blob.read_at(0, 1).await.unwrap(), [0]);
        assert_eq!(db.stats().readers_held, 0);
        db.execute("INSERT INTO other VALUES (1)", ()).await.unwrap();
        db.checkpoint(CheckpointMode::Truncate).await.unwrap();
        assert_eq!(std::fs::metadata(file.beside("-wal")).unwrap().len(), 0, "nothing kept the WAL");
        assert_eq!(blob.read_at(1, 1).await.unwrap(), [7]);
    });
}

#[test]
fn a_blob_of_another_process_and_of_an_attached_file_is_the_newest() {
    let (file, second) = (TestFile::new(), TestFile::new());
    run(async {
        drop(files(second.options()).await.close().await);
        let db = files(file.options().tuning(|t| t.attach("more", second.path()))).await;
        file.plain().execute_batch("CREATE TABLE late (a); INSERT INTO late VALUES (x'0a0b')").unwrap();
        let late = db.open_blob("late", "a", 1).await.unwrap();
        file.plain().execute_batch("UPDATE late SET a = x'0c0d'").unwrap();
        assert_eq!(late.read_at(0, 2).await.unwrap(), [0x0c, 0x0d]);
        let attached = db.open_blob(("more", "files"), "data", 1).await.unwrap();
        attached.write_at(0, b"here".to_vec()).await.unwrap();
        db.close().await.unwrap();
        assert_eq!(integer(&second.plain(), "SELECT substr(data, 1, 4) = CAST('here' AS BLOB) FROM files"), 1);
        assert_eq!(integer(&file.plain(), "SELECT substr(data, 1, 4) = CAST('here' AS BLOB) FROM files"), 0);
    });
}

#[test]
fn a_file_that_is_only_read_and_one_without_a_wal_have_blobs() {
    let file = TestFile::new();
    run(async {
        files(file.options()).await.close().await.unwrap();
        let db = file.options().read_only(true).open().await.unwrap();
        let blob = db.open_blob("files", "data", 1).await.unwrap();
        assert_eq!(blob.read_at(1, 1).await.unwrap(), [7]);
        assert_eq!(blob.write_at(0, [1]).await.unwrap_err().kind(), ErrorKind::Misuse);
        db.close().await.unwrap();

        file.plain().execute_batch("PRAGMA journal_mode = DELETE").unwrap();
        let db = file.options().journal(Journal::Keep).open().await.unwrap();
        let blob = db.open_blob("files", "data", 1).await.unwrap();
        blob.write_at(0, [1]).await.unwrap();
        assert_eq!(blob.read_at(0, 2).await.unwrap(), [1, 7]);
        db.close().await.unwrap();
        assert_eq!(blob.read_at(0, 2).await.unwrap_err().kind(), ErrorKind::Closed);
    });
}
