//! The service as its clients see it: most through the router, the end of it over a socket.

use std::net::SocketAddr;
use std::pin::pin;

use axum::Router;
use axum::body::Body;
use axum::http::{Request, StatusCode};
use flatwater::rusqlite::Connection;
use flatwater::testing::TestDatabase;
use flatwater_example_axum::{App, router, schema, serve};
use futures_util::poll;
use http_body_util::BodyExt;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tower::ServiceExt;

async fn send(service: &Router, method: &str, path: &str, body: &'static str) -> (StatusCode, String) {
    let request = Request::builder().method(method).uri(path).header("content-type", "application/json");
    let answer = service.clone().oneshot(request.body(Body::from(body)).unwrap()).await.unwrap();
    let status = answer.status();
    let body = answer.into_body().collect().await.unwrap().to_bytes();
    (status, String::from_utf8(body.to_vec()).unwrap())
}

async fn get(service: &Router, path: &str) -> String {
    let (status, body) = send(service, "GET", path, "").await;
    assert_eq!(status, StatusCode::OK, "{path}: {body}");
    body
}

#[tokio::test]
async fn tasks_are_created_changed_found_page_by_page_and_deleted() {
    let db = TestDatabase::on_file(schema).await.unwrap();
    let service = router(App::new(&db));
    assert_eq!(get(&service, "/tasks").await, "[]");

    let (status, tea) = send(&service, "POST", "/tasks", r#"{"title": "buy \"tea\"", "due": "2027-02-28"}"#).await;
    assert_eq!(status, StatusCode::CREATED);
    assert_eq!(tea, r#"{"id":1,"title":"buy \"tea\"","state":"open","due":"2027-02-28"}"#);
    for body in [r#"{"title": "pay rent, now"}"#, r#"{"title": "drink tea"}"#] {
        assert_eq!(send(&service, "POST", "/tasks", body).await.0, StatusCode::CREATED);
    }
    let (_, rent) = send(&service, "PATCH", "/tasks/2", r#"{"state": "done"}"#).await;
    assert_eq!(rent, r#"{"id":2,"title":"pay rent, now","state":"done","due":null}"#);
    assert_eq!(get(&service, "/tasks/2").await, rent);

    assert_eq!(get(&service, "/tasks?state=open&text=tea&due_by=2027-12-31").await, format!("[{tea}]"));
    assert_eq!(get(&service, "/tasks?limit=1").await, format!("[{tea}]"));
    assert_eq!(get(&service, "/tasks?limit=1&after=1").await, format!("[{rent}]"));
    assert_eq!(
        get(&service, "/tasks.csv").await,
        "id,title,state,due\n1,\"buy \"\"tea\"\"\",open,2027-02-28\n2,\"pay rent, now\",done,\n3,drink tea,open,\n"
    );

    assert_eq!(send(&service, "DELETE", "/tasks/1", "").await, (StatusCode::NO_CONTENT, String::new()));
    assert_eq!(send(&service, "DELETE", "/tasks/1", "").await.0, StatusCode::NOT_FOUND);
    assert_eq!(send(&service, "GET", "/tasks/1", "").await.0, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn prometheus_is_told_the_figures() {
    let db = TestDatabase::on_file(schema).await.unwrap();
    let service = router(App::new(&db));
    let text = get(&service, "/metrics").await;
    assert!(text.contains("\nflatwater_wal_backlog{database=\"tasks\"} 0\n"), "{text}");
}

#[tokio::test]
async fn an_error_is_a_status_and_shows_no_sql() {
    let db = TestDatabase::on_file(schema).await.unwrap();
    let service = router(App::new(&db));
    send(&service, "POST", "/tasks", r#"{"title": "buy tea"}"#).await;
    for (method, path, body, expected) in [
        ("POST", "/tasks", r#"{"title": "buy tea"}"#, StatusCode::CONFLICT),
        ("POST", "/tasks", r#"{"title": ""}"#, StatusCode::UNPROCESSABLE_ENTITY),
        ("POST", "/tasks", r#"{"title": "rest", "due": "soon"}"#, StatusCode::UNPROCESSABLE_ENTITY),
        ("PATCH", "/tasks/1", r#"{"state": "lost"}"#, StatusCode::UNPROCESSABLE_ENTITY),
        ("PATCH", "/tasks/9", r#"{"state": "done"}"#, StatusCode::NOT_FOUND),
        ("GET", "/tasks?limit=many", "", StatusCode::BAD_REQUEST),
    ] {
        let (status, says) = send(&service, method, path, body).await;
        assert_eq!(status, expected, "{method} {path} {body}: {says}");
        assert!(!says.contains("INSERT") && !says.contains("UPDATE") && !says.contains("buy tea"), "{says}");
    }
    assert_eq!(get(&service, "/tasks/1").await, r#"{"id":1,"title":"buy tea","state":"open","due":null}"#);

    db.close().await.unwrap();
    assert_eq!(send(&service, "GET", "/tasks", "").await.0, StatusCode::SERVICE_UNAVAILABLE);
}

#[tokio::test]
async fn an_export_is_of_one_point_in_time_and_a_broken_one_is_no_whole_one() {
    let db = TestDatabase::on_file(schema).await.unwrap();
    let titles = (0..5_000).map(|n| (format!("task {n}"),));
    db.execute_many("INSERT INTO tasks (title) VALUES (?)", titles).await.unwrap();
    let service = router(App::new(&db));
    let request = Request::builder().uri("/tasks.csv").body(Body::empty()).unwrap();
    let mut body = service.clone().oneshot(request).await.unwrap().into_body();
    // The head, and the first rows.
    body.frame().await.unwrap().unwrap();
    body.frame().await.unwrap().unwrap();
    db.execute("DELETE FROM tasks", ()).await.unwrap();
    let rest = body.collect().await.unwrap().to_bytes();
    assert!(rest.ends_with(b"\n5000,task 4999,open,\n"));

    db.close().await.unwrap();
    let request = Request::builder().uri("/tasks.csv").body(Body::empty()).unwrap();
    assert!(service.oneshot(request).await.unwrap().into_body().collect().await.is_err());
}

/// One client of `GET /events`.
struct Tab(BufReader<TcpStream>);

impl Tab {
    async fn open(address: SocketAddr, search: &str) -> Self {
        let mut connection = TcpStream::connect(address).await.unwrap();
        let request = format!("GET /events{search} HTTP/1.1\r\nhost: test\r\n\r\n");
        connection.write_all(request.as_bytes()).await.unwrap();
        Self(BufReader::new(connection))
    }

    /// Returns the titles of the next event.
    async fn titles(&mut self) -> String {
        let mut line = String::new();
        while !line.starts_with("data:") {
            line.clear();
            assert!(self.0.read_line(&mut line).await.unwrap() > 0, "the response has ended");
        }
        titles(&line)
    }

    /// Returns the titles of the events up to the end of the response.
    async fn rest(mut self) -> String {
        let mut rest = String::new();
        self.0.read_to_string(&mut rest).await.unwrap();
        titles(&rest)
    }
}

fn titles(json: &str) -> String {
    let titles = json.split(r#""title":""#).skip(1).filter_map(|title| title.split('"').next());
    titles.collect::<Vec<_>>().join(", ")
}

#[tokio::test]
async fn all_tabs_show_a_change_whoever_made_it_until_the_service_stops() {
    let db = TestDatabase::on_file(schema).await.unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let app = App::new(&db);
    let (stop, stopped) = oneshot::channel::<()>();
    let server = tokio::spawn(serve(listener, app.clone(), async { stopped.await.unwrap() }));
    let service = router(app);

    let mut tabs = [Tab::open(address, "?state=open").await, Tab::open(address, "?state=open").await];
    let mut done = Tab::open(address, "?state=done").await;
    for tab in tabs.iter_mut().chain([&mut done]) {
        assert_eq!(tab.titles().await, "");
    }
    assert_eq!((db.stats().live.queries, db.stats().live.subscribers), (2, 3));

    send(&service, "POST", "/tasks", r#"{"title": "buy tea"}"#).await;
    for tab in &mut tabs {
        assert_eq!(tab.titles().await, "buy tea");
    }
    // As another process has it: SQLite's own.
    let plain = Connection::open(db.path().unwrap()).unwrap();
    plain.execute("INSERT INTO tasks (title) VALUES ('drink tea')", []).unwrap();
    for tab in &mut tabs {
        assert_eq!(tab.titles().await, "buy tea, drink tea");
    }
    send(&service, "PATCH", "/tasks/1", r#"{"state": "done"}"#).await;
    for tab in &mut tabs {
        assert_eq!(tab.titles().await, "drink tea");
    }
    // What did not concern this one was not sent to it.
    assert_eq!(done.titles().await, "buy tea");

    stop.send(()).unwrap();
    // The responses have no other end.
    for tab in tabs.into_iter().chain([done]) {
        assert_eq!(tab.rest().await, "");
    }
    server.await.unwrap().unwrap();
    assert_eq!(db.query("SELECT 1", ()).await.unwrap_err().kind(), flatwater::ErrorKind::Closed);
}

/// Returns the titles of the next event of a client without a socket, which reads when it is told to.
async fn next(events: &mut Body) -> String {
    let frame = events.frame().await.unwrap().unwrap().into_data().unwrap();
    titles(std::str::from_utf8(&frame).unwrap())
}

async fn events(service: &Router) -> Body {
    let request = Request::builder().uri("/events").body(Body::empty()).unwrap();
    service.clone().oneshot(request).await.unwrap().into_body()
}

#[tokio::test]
async fn a_client_that_does_not_read_gets_the_newest_page() {
    let db = TestDatabase::on_file(schema).await.unwrap();
    let service = router(App::new(&db));
    let mut events = events(&service).await;
    assert_eq!(next(&mut events).await, "");
    db.execute("INSERT INTO tasks (title) VALUES ('0')", ()).await.unwrap();
    for number in 1..=300 {
        db.execute("UPDATE tasks SET title = ?", (number.to_string(),)).await.unwrap();
    }
    while db.stats().live.pending > 0 {
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    }
    // One was there, one may have been on its way, and one is of the end.
    let mut count = 1;
    while next(&mut events).await != "300" {
        count += 1;
    }
    assert!(count <= 3, "{count} events");
}

#[tokio::test]
async fn an_error_is_no_event_and_the_pages_after_it_are() {
    let db = TestDatabase::on_file(schema).await.unwrap();
    let service = router(App::new(&db));
    let mut events = events(&service).await;
    assert_eq!(next(&mut events).await, "");
    // It shares the query of the client, so that both have the error when it has it.
    let search = "SELECT id, title, state, due FROM tasks WHERE id > ? ORDER BY id LIMIT ?";
    let mut same = db.live(search, (0, 50));
    assert!(same.next().await.unwrap().unwrap().is_empty());
    assert_eq!(db.stats().live.queries, 1);

    db.execute("ALTER TABLE tasks RENAME TO hidden", ()).await.unwrap();
    same.next().await.unwrap().unwrap_err();
    assert!(poll!(pin!(events.frame())).is_pending());
    db.execute("INSERT INTO hidden (title) VALUES ('buy tea')", ()).await.unwrap();
    db.execute("ALTER TABLE hidden RENAME TO tasks", ()).await.unwrap();
    assert_eq!(next(&mut events).await, "buy tea");
}
