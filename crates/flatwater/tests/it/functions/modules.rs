//! Modules of virtual tables that a program brings, and automatic extensions.

use flatwater::calls::CheckpointMode;
use flatwater::{Database, ErrorKind, Options};

use super::extensions::Compiled;
use crate::place::{Place, in_both_places};
use crate::support::{TestFile, empty_table, is_alone_in_process, run};

in_both_places!(
    a_module_that_on_connect_registers_is_read_on_every_connection,
    a_module_with_rows_of_its_own_is_written_and_read,
    a_live_query_on_a_module_runs_again_after_each_commit,
    a_write_to_a_module_that_is_undone_is_told_as_it_is,
);

fn with_series(options: Options) -> Options {
    options.on_connect(rusqlite::vtab::series::load_module)
}

async fn a_module_that_on_connect_registers_is_read_on_every_connection(place: &Place) {
    let db = empty_table(with_series(place.options())).await;
    let sum = "SELECT sum(value) FROM generate_series(1, 4)";
    let reads: Vec<_> = (0..20).map(|_| db.query_value::<i64>(sum, ())).collect();
    for read in futures_util::future::join_all(reads).await {
        assert_eq!(read.unwrap(), 10);
    }
    db.execute("INSERT INTO t SELECT value FROM generate_series(1, 3)", ()).await.unwrap();
    let tx = db.begin().await.unwrap();
    assert_eq!(tx.query_value::<i64>(sum, ()).await.unwrap(), 10);
    tx.commit().await.unwrap();
    let mut live = db.live("SELECT count(*) FROM t, generate_series(1, 3)", ());
    for expected in [9_i64, 12] {
        assert_eq!(first(&live.next().await.unwrap().unwrap()), expected);
        db.execute("INSERT INTO t VALUES (7)", ()).await.unwrap();
    }
}

fn first(rows: &flatwater::live::LiveRows) -> i64 {
    rows.iter().next().unwrap().get(0).unwrap()
}

async fn values(db: &Database) -> Vec<i64> {
    db.query_values("SELECT value FROM shared", ()).await.unwrap()
}

async fn a_module_with_rows_of_its_own_is_written_and_read(place: &Place) {
    let module = Compiled::of("module");
    let db = empty_table(place.options().load_extension(module.path(), None)).await;
    for expected in 1..=3_i64 {
        let inserted = db.execute("INSERT INTO shared VALUES (?)", (expected * 10,)).await.unwrap();
        assert_eq!((inserted.changes, inserted.last_insert_rowid), (1, Some(expected)));
    }
    assert_eq!(values(&db).await, [10, 20, 30]);
    assert_eq!(db.execute("UPDATE shared SET value = value + 1 WHERE value > 10", ()).await.unwrap().changes, 2);
    assert_eq!(db.execute("DELETE FROM shared WHERE value = 10", ()).await.unwrap().changes, 1);
    let writes: Vec<_> = (0..20).map(|n| db.execute("INSERT INTO shared VALUES (?)", (n,))).collect();
    futures_util::future::join_all(writes).await.into_iter().for_each(|write| assert_eq!(write.unwrap().changes, 1));
    let tx = db.begin().await.unwrap();
    tx.execute("INSERT INTO t SELECT count(*) FROM shared", ()).await.unwrap();
    tx.execute("INSERT INTO shared SELECT a FROM t", ()).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!((values(&db).await.len(), values(&db).await.last().copied()), (23, Some(22)));
    // One that has a name in the schema needs the module on the connections that come, too.
    db.execute("CREATE VIRTUAL TABLE named USING shared", ()).await.unwrap();
    db.with_connection(|_| Ok::<_, flatwater::Error>(())).await.unwrap();
    assert_eq!(db.query_value::<i64>("SELECT count(*) FROM named", ()).await.unwrap(), 23);
}

/// A write that changes nothing but what the module keeps is no commit of a file.
async fn a_live_query_on_a_module_runs_again_after_each_commit(place: &Place) {
    let module = Compiled::of("module");
    let db = empty_table(place.options().load_extension(module.path(), None)).await;
    let mut live = db.live("SELECT count(*) FROM shared", ());
    for expected in 0..5_i64 {
        assert_eq!(first(&live.next().await.unwrap().unwrap()), expected);
        db.execute_script("INSERT INTO shared VALUES (1); INSERT INTO t VALUES (1)").await.unwrap();
    }
}

/// What a module keeps outside of the database is not rolled back, unless it does that itself.
async fn a_write_to_a_module_that_is_undone_is_told_as_it_is(place: &Place) {
    let module = Compiled::of("module");
    let db = empty_table(place.options().load_extension(module.path(), None)).await;
    let tx = db.begin().await.unwrap();
    tx.execute("INSERT INTO shared VALUES (1)", ()).await.unwrap();
    tx.execute("INSERT INTO t VALUES (1)", ()).await.unwrap();
    tx.rollback().await.unwrap();
    assert_eq!(db.query_value::<i64>("SELECT count(*) FROM t", ()).await.unwrap(), 0);
    assert_eq!(values(&db).await, [1]);
}

#[test]
fn a_table_whose_module_nobody_registered_is_named() {
    let (file, module) = (TestFile::new(), Compiled::of("module"));
    run(async {
        let db = file.options().load_extension(module.path(), None).open().await.unwrap();
        db.execute("CREATE VIRTUAL TABLE named USING shared", ()).await.unwrap();
        db.close().await.unwrap();
        let db = empty_table(file.options()).await;
        let error = db.query("SELECT * FROM named", ()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Sql);
        assert!(error.message().contains("no such module: shared"), "{error}");
        assert_eq!(db.query_value::<i64>("SELECT count(*) FROM t", ()).await.unwrap(), 0, "other tables are used");
    });
}

#[test]
fn an_automatic_extension_reaches_every_connection_also_the_checkpointers() {
    let name = "functions::modules::an_automatic_extension_reaches_every_connection_also_the_checkpointers";
    if !is_alone_in_process(name, None) {
        return;
    }
    let (file, module) = (TestFile::new(), Compiled::of("module"));
    run(async {
        // The connection that loads it is there already.
        let loads = Options::new(":memory:").load_extension(module.path(), Some("registers_for_each_connection"));
        let _loaded = loads.open().await.unwrap();
        let db = empty_table(file.options().readers(1)).await;
        let connections = "SELECT connections()";
        assert_eq!(db.query_value::<i64>("SELECT count(*) FROM t", ()).await.unwrap(), 0);
        db.checkpoint(CheckpointMode::Passive).await.unwrap();
        assert_eq!(db.query_value::<i64>(connections, ()).await.unwrap(), 3, "writer, reader, checkpointer");
        let tx = db.begin().await.unwrap();
        assert_eq!(tx.query_value::<i64>(connections, ()).await.unwrap(), 3);
    });
}
