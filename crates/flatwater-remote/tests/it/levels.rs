//! What reads see, by their level.

use std::time::Duration;

use flatwater_remote::Level;
use serde_json::json;

use super::double::{Double, wait_until};

#[test]
fn a_read_at_the_leader_sees_each_acknowledged_write() {
    let double = Double::start();
    let remote = double.connect();
    remote.execute("CREATE TABLE t (a)", ()).wait().unwrap();
    double.order(&json!({ "chance": 0.2, "seed": 7 }));
    for number in 1..=60 {
        remote.execute("INSERT INTO t VALUES (?)", (number,)).wait().unwrap();
        for level in [Level::Weak, Level::Linearizable, Level::Strong] {
            let seen: i64 = remote.with_level(level).query_value("SELECT max(a) FROM t", ()).wait().unwrap();
            assert_eq!(seen, number, "{level:?}");
        }
    }
}

#[test]
fn a_read_at_any_node_sees_what_that_node_has() {
    let double = Double::start();
    double.order(&json!({ "lag_ms": 0 }));
    let remote = double.connect();
    remote.execute("CREATE TABLE t (a)", ()).wait().unwrap();
    let any = remote.with_level(Level::None { freshness: Some(Duration::from_secs(10)) });
    let count = || any.query_value::<i64>("SELECT count(*) FROM t", ()).wait();
    wait_until(|| (0..3).all(|_| count().is_ok()));
    // The followers stand still.
    double.order(&json!({ "lag_ms": 3_600_000 }));
    remote.execute("INSERT INTO t VALUES (1)", ()).wait().unwrap();
    let mut seen: Vec<i64> = (0..3).map(|_| count().unwrap()).collect();
    seen.sort();
    assert_eq!(seen, [0, 0, 1]);
    assert_eq!(remote.query_value::<i64>("SELECT count(*) FROM t", ()).wait().unwrap(), 1);
    double.order(&json!({ "lag_ms": 0 }));
    wait_until(|| (0..3).all(|_| count().unwrap() == 1));
}
