//! A libSQL server with several databases.

use std::io::{Read as _, Write as _};

use flatwater::ErrorKind;
use flatwater_remote::Libsql;

use super::double::runtime;
use super::sqld::Sqld;

#[test]
#[ignore = "needs sqld: make test-libsql"]
fn a_libsql_server_may_have_several_databases() {
    let (server, admin) = Sqld::with_databases();
    let make = |name: &str| {
        let mut stream = std::net::TcpStream::connect(("127.0.0.1", admin)).unwrap();
        let head = format!("POST /v1/namespaces/{name}/create HTTP/1.1\r\nHost: h\r\nConnection: close");
        write!(stream, "{head}\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{{}}").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    };
    let open = |name: &str| {
        let address = format!("libsql://127.0.0.1:{}/?tls=0&timeout=60s&database={name}", server.http);
        Libsql::connect(&address).unwrap()
    };
    runtime().block_on(async {
        make("one");
        make("two");
        let (one, two) = (open("one"), open("two"));
        one.execute("CREATE TABLE t (a)", ()).await.unwrap();
        let tx = one.begin().await.unwrap();
        tx.execute("INSERT INTO t VALUES (1)", ()).await.unwrap();
        tx.commit().await.unwrap();
        assert_eq!(one.stream("SELECT a FROM t", ()).next().await.unwrap().unwrap().get::<i64>(0).unwrap(), 1);
        assert_eq!(two.query("SELECT a FROM t", ()).await.unwrap_err().kind(), ErrorKind::Sql);
        assert!(one.name().ends_with("/one"));
        let missing = open("three");
        let error = missing.query("SELECT 1", ()).await.unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Open), "{error}");
    });
}
