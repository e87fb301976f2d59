//! Columns that are JSON themselves: they are part of the document, and no text can break it. Built with feature
//! `serde_json` only.

use flatwater::ErrorKind;
use flatwater::calls::JsonCall;

use crate::place::{Place, in_both_places};

in_both_places!(
    embedded_json_is_inserted_as_it_is,
    an_embedded_text_cannot_break_the_document,
    embedded_columns_follow_the_schema,
);

async fn embedded_json_is_inserted_as_it_is(place: &Place) {
    let db = place.open().await;
    let json = |call: JsonCall| call.embed("doc").embed("list").embed("missing");
    for _ in 0..4 {
        let sql = "SELECT '{\"a\": [1, 2.50]}' AS doc, json_array(1, 'x') AS list, '[1]' AS text, '[1]' AS DOC";
        let expected = r#"[{"doc":{"a": [1, 2.50]},"list":[1,"x"],"text":"[1]","DOC":"[1]"}]"#;
        assert_eq!(json(db.query_json(sql, ())).await.unwrap(), expected);
        let sql = "SELECT NULL AS doc, 7 AS list UNION ALL SELECT 0.5, '\"s\"'";
        let expected = r#"[{"doc":null,"list":7},{"doc":0.5,"list":"s"}]"#;
        assert_eq!(json(db.query_json(sql, ())).await.unwrap(), expected);
    }
    let arrays = db.query_json("SELECT '[1]' AS doc, '[1]' AS text", ()).arrays().embed("doc");
    assert_eq!(arrays.await.unwrap(), r#"[[[1],"[1]"]]"#);
    db.close().await.unwrap();
}

async fn an_embedded_text_cannot_break_the_document(place: &Place) {
    let db = place.open().await;
    let secret = r#"1},{"admin":true"#;
    for text in [secret, "", "[1", "nope", "{a: 1}", "\"\u{1}\"", "1e999", "\"\\ud800\""] {
        let error = db.query_json("SELECT 1 AS id, ? AS doc", (text,)).embed("doc").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Decode);
        assert!(error.message().contains("column 1 (doc)"), "{error}");
        assert!(!format!("{error:?} {error}").contains("admin"), "{error}");
    }
    let error = db.query_json("SELECT jsonb('[1]') AS doc", ()).embed("doc").await.unwrap_err();
    assert!(error.hint().unwrap().contains("json(column)"), "{error}");
    let deep = format!("{}{}", "[".repeat(900), "]".repeat(900));
    db.query_json("SELECT ? AS doc", (deep,)).embed("doc").await.unwrap_err();
    db.close().await.unwrap();
}

async fn embedded_columns_follow_the_schema(place: &Place) {
    let db = place.open().await;
    db.execute_script("CREATE TABLE t (a); INSERT INTO t VALUES ('[1]')").await.unwrap();
    for _ in 0..4 {
        assert_eq!(db.query_json("SELECT * FROM t", ()).embed("b").await.unwrap(), r#"[{"a":"[1]"}]"#);
    }
    let change = "ALTER TABLE t RENAME COLUMN a TO b";
    match place.file() {
        Some(file) => file.plain().execute_batch(change).unwrap(),
        None => drop(db.execute(change, ()).await.unwrap()),
    }
    for _ in 0..4 {
        assert_eq!(db.query_json("SELECT * FROM t", ()).embed("b").await.unwrap(), r#"[{"b":[1]}]"#);
    }
    db.close().await.unwrap();
}
