//! Rows that go and columns that are read without a report of SQLite, as words in SQL tell of them; and where a virtual table
//! keeps its rows. Pure.
//!
//! Owns: reading them from texts and from the definitions in a schema. Invariant: a text that may replace rows, empty
//! a table, or join by name is found; one that does not may be found too, which only costs precision. Leaves out: what
//! follows from that (`dependencies`).

use flatwater_sqlite::REPORTS_ALL_ROWS;

use super::tokens::words;
use crate::dependencies::tables::Kind;
use crate::dependencies::writes::Unreported;

/// Returns what the text of a write shows about rows that go without a report.
pub(crate) fn unreported(sql: &str) -> Unreported {
    Unreported { replaces: !REPORTS_ALL_ROWS && may_replace(sql), empties: may_empty(sql) }
}

/// Returns true if the text, or a definition, may resolve a conflict by deleting the row that is there.
pub(crate) fn may_replace(sql: &str) -> bool {
    let words: Vec<&str> = words(sql).collect();
    let replaces = |at: usize| words.get(at).is_some_and(|word| word.eq_ignore_ascii_case("REPLACE"));
    // Otherwise it is the function.
    (0..words.len()).any(|at| replaces(at) && words.get(at + 1) != Some(&"("))
}

/// Returns true for a DELETE without WHERE, for which SQLite may empty the table at once
/// (<https://sqlite.org/lang_delete.html#the_truncate_optimization>).
fn may_empty(sql: &str) -> bool {
    let mut rest = words(sql).skip_while(|word| !word.eq_ignore_ascii_case("DELETE"));
    rest.next().is_some() && !rest.any(|word| word.eq_ignore_ascii_case("WHERE"))
}

/// Returns true if the text of a query, or of a view, may join tables by USING or NATURAL: the authorizer is not asked for
/// the columns that such a join compares (`sqlite3ProcessJoin`).
pub(crate) fn joins_by_name(sql: &str) -> bool {
    words(sql).any(|word| word.eq_ignore_ascii_case("USING") || word.eq_ignore_ascii_case("NATURAL"))
}

/// Returns true if a text that has this name has it among its [`names`](super::tokens::names). A quote in a name is written in
/// more than one way.
pub(crate) fn has_one_spelling(name: &str) -> bool {
    !name.contains(['"', '`', ']', '\''])
}

/// Returns the module of a virtual table with this definition.
pub(crate) fn module_of(definition: &str) -> &str {
    words(definition).skip_while(|word| !word.eq_ignore_ascii_case("USING")).nth(1).unwrap_or_default()
}

/// Returns the kind of a virtual table with this definition.
pub(crate) fn kind_of_virtual(definition: &str) -> Kind {
    let module = module_of(definition);
    let words = words(definition).skip_while(|word| !word.eq_ignore_ascii_case("USING")).skip(2);
    let keeps_its_rows =
        ["fts3", "fts4", "fts5", "rtree", "rtree_i32"].iter().any(|one| one.eq_ignore_ascii_case(module));
    let words: Vec<&str> = words.collect();
    // With `content=` the rows are those of another table. FTS5 takes the beginning of the word for it too.
    let is_content = |two: &[&str]| two[1] == "=" && "content".starts_with(&*two[0].to_ascii_lowercase());
    if keeps_its_rows && !words.windows(2).any(is_content) { Kind::Shadowed } else { Kind::Virtual }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_that_may_replace_rows_are_found() {
        for sql in [
            "REPLACE INTO t VALUES (1)",
            "insert or replace into t values (1)",
            "UPDATE OR REPLACE t SET a = 1",
            "CREATE TABLE t (a UNIQUE ON CONFLICT REPLACE, b)",
            "CREATE TRIGGER x AFTER INSERT ON t BEGIN REPLACE INTO u VALUES (1); END",
        ] {
            assert!(may_replace(sql), "{sql}");
        }
        for sql in
            ["UPDATE t SET a = replace(a, 'x', 'y')", "INSERT INTO t VALUES ('OR REPLACE')", "SELECT \"replace\""]
        {
            assert!(!may_replace(sql), "{sql}");
        }
    }

    #[test]
    fn a_delete_without_where_is_found() {
        let with = "WITH x AS (SELECT a FROM u WHERE a > 1) DELETE FROM t";
        for sql in ["DELETE FROM t", with, "DELETE FROM t RETURNING a"] {
            assert!(may_empty(sql), "{sql}");
        }
        for sql in ["DELETE FROM t WHERE a = 1", "INSERT INTO t VALUES (1)", "UPDATE t SET a = 1"] {
            assert!(!may_empty(sql), "{sql}");
        }
    }

    #[test]
    fn a_join_by_name_is_found() {
        for sql in ["SELECT 1 FROM a JOIN b using(k)", "CREATE VIEW v AS SELECT 1 FROM a NATURAL LEFT JOIN b"] {
            assert!(joins_by_name(sql), "{sql}");
        }
        assert!(!joins_by_name("SELECT 'USING', \"natural\" FROM a JOIN b ON a.k = b.k -- NATURAL"));
    }

    #[test]
    fn a_virtual_table_that_keeps_its_own_rows_is_known() {
        assert_eq!(kind_of_virtual("CREATE VIRTUAL TABLE f USING fts5(body, tokenize='porter')"), Kind::Shadowed);
        assert_eq!(kind_of_virtual("CREATE VIRTUAL TABLE f USING FTS5(body, content='docs')"), Kind::Virtual);
        assert_eq!(kind_of_virtual("CREATE VIRTUAL TABLE f USING fts5(body, Cont = 'docs')"), Kind::Virtual);
        assert_eq!(kind_of_virtual("CREATE VIRTUAL TABLE f USING fts4(content='')"), Kind::Virtual);
        assert_eq!(kind_of_virtual("CREATE VIRTUAL TABLE f USING fts5vocab(g, row)"), Kind::Virtual);
        assert_eq!(kind_of_virtual("CREATE VIRTUAL TABLE temp.f USING dbstat"), Kind::Virtual);
    }
}
