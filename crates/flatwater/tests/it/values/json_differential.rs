//! Compares `query_json` with `serde_json`: random rows are the same document, byte by byte.
//!
//! `FLATWATER_SEED` repeats the rows.

use flatwater::rusqlite::types::{Value, ValueRef};
use flatwater::{Params, Row, Rows};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};

use crate::place::{Place, in_both_places};

in_both_places!(json_is_what_serde_json_writes_of_the_same_rows);

/// A row as a program would give it to serde.
struct AsMap<'a>(Row<'a>);
struct AsArray<'a>(Row<'a>);
struct Cell<'a>(ValueRef<'a>);

impl Serialize for AsMap<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, value) in self.0.columns().zip(self.0.values()) {
            map.serialize_entry(name, &Cell(value))?;
        }
        map.end()
    }
}

impl Serialize for AsArray<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut array = serializer.serialize_seq(Some(self.0.len()))?;
        for value in self.0.values() {
            array.serialize_element(&Cell(value))?;
        }
        array.end()
    }
}

impl Serialize for Cell<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            ValueRef::Null => serializer.serialize_unit(),
            ValueRef::Integer(value) => serializer.serialize_i64(value),
            ValueRef::Real(value) => serializer.serialize_f64(value),
            ValueRef::Text(text) => serializer.serialize_str(std::str::from_utf8(text).unwrap()),
            ValueRef::Blob(_) => unreachable!("serde_json has no form for it"),
        }
    }
}

fn maps(rows: &Rows) -> String {
    serde_json::to_string(&rows.iter().map(AsMap).collect::<Vec<_>>()).unwrap()
}

fn arrays(rows: &Rows) -> String {
    serde_json::to_string(&rows.iter().map(AsArray).collect::<Vec<_>>()).unwrap()
}

const PIECES: &[&str] = &[
    "plain text without anything",
    "\"",
    "\\",
    "/",
    "\n\r\t",
    "\u{8}\u{c}",
    "\\u0000",
    "\\ud800",
    "é",
    "日本",
    "😀",
    "\u{2028}",
    "\u{2029}",
    "\u{7f}",
    "\u{80}",
    "\u{fffd}",
    "\u{feff}",
    "\u{ffff}",
    "\u{10ffff}",
    "</script>",
    "null",
    "{\"a\":1}",
];

fn text(random: &mut StdRng) -> String {
    let mut text = String::new();
    for _ in 0..random.random_range(0..8) {
        match random.random_range(0..4) {
            0 => text.push(char::from(random.random_range(0..0x20_u8))),
            1 => text.push(random.random()),
            _ => text.push_str(PIECES[random.random_range(0..PIECES.len())]),
        }
    }
    text
}

fn value(random: &mut StdRng) -> Value {
    const INTEGERS: [i64; 8] = [0, -1, i64::MIN, i64::MAX, 1 << 53, (1 << 53) - 1, -(1 << 53), 1 - (1 << 53)];
    const REALS: [f64; 10] =
        [-0.0, 0.1, 1e21, 1e-7, 5e-324, f64::MIN_POSITIVE, f64::MAX, f64::INFINITY, 1e16, 123456789.0];
    match random.random_range(0..9) {
        0 => Value::Null,
        1 => Value::Integer(INTEGERS[random.random_range(0..INTEGERS.len())]),
        2 => Value::Integer(random.random()),
        3 => Value::Integer(random.random_range(-100..100)),
        4 => Value::Real(REALS[random.random_range(0..REALS.len())]),
        5 => match f64::from_bits(random.random()) {
            nan if nan.is_nan() => Value::Null,
            any => Value::Real(any),
        },
        _ => Value::Text(text(random)),
    }
}

async fn json_is_what_serde_json_writes_of_the_same_rows(place: &Place) {
    let seed = std::env::var("FLATWATER_SEED").map_or_else(|_| rand::random(), |seed| seed.parse().unwrap());
    let mut random = StdRng::seed_from_u64(seed);
    println!("FLATWATER_SEED={seed}");
    let db = place.open().await;
    let names: Vec<_> = (0..5).map(|column| format!("{column}{}", text(&mut random)).replace('\0', "")).collect();
    let columns: Vec<_> = names.iter().map(|name| format!("\"{}\"", name.replace('"', "\"\""))).collect();
    db.execute(format!("CREATE TABLE t ({})", columns.join(", ")), ()).await.unwrap();
    let rows: Vec<_> = (0..500).map(|_| Params::positional((0..5).map(|_| value(&mut random))).unwrap()).collect();
    db.execute_many("INSERT INTO t VALUES (?, ?, ?, ?, ?)", rows).await.unwrap();
    for limit in [0, 1, 2, 100, 500] {
        // Several times: the later ones may run inline.
        for _ in 0..4 {
            let sql = "SELECT * FROM t ORDER BY rowid LIMIT ?";
            let rows = db.query(sql, (limit,)).await.unwrap();
            assert_eq!(rows.len(), limit);
            let json = db.query_json(sql, (limit,)).await.unwrap();
            assert_eq!(json, maps(&rows));
            serde_json::from_str::<serde_json::Value>(&json).unwrap();
            assert_eq!(db.query_json(sql, (limit,)).arrays().await.unwrap(), arrays(&rows));
        }
    }
    db.close().await.unwrap();
}
