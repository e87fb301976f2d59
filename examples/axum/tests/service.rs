//! The service as its clients see it: most through the router, the end of it over a socket.

use axum::Router;
use axum::body::Body;
use axum::http::{Request, StatusCode};
use flatwater::testing::TestDatabase;
use flatwater_example_axum::{App, router, schema, serve};
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

#[tokio::test]
async fn listeners_are_told_of_commits_until_the_service_stops() {
    let db = TestDatabase::on_file(schema).await.unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let app = App::new(&db);
    let (stop, stopped) = oneshot::channel::<()>();
    let server = tokio::spawn(serve(listener, app.clone(), async { stopped.await.unwrap() }));

    let mut events = BufReader::new(TcpStream::connect(address).await.unwrap());
    events.write_all(b"GET /events HTTP/1.1\r\nhost: test\r\n\r\n").await.unwrap();
    let mut line = String::new();
    // The end of the head: the handler has run, so it is subscribed.
    while line != "\r\n" {
        line.clear();
        assert!(events.read_line(&mut line).await.unwrap() > 0);
    }
    let service = router(app);
    send(&service, "POST", "/tasks", r#"{"title": "buy tea"}"#).await;
    send(&service, "POST", "/tasks", r#"{"title": "buy tea"}"#).await;
    send(&service, "DELETE", "/tasks/1", "").await;
    for expected in [r#"data: {"what":"created","id":1}"#, r#"data: {"what":"deleted","id":1}"#] {
        while !line.starts_with("data:") {
            line.clear();
            assert!(events.read_line(&mut line).await.unwrap() > 0);
        }
        assert_eq!(line.trim_end(), expected);
        line.clear();
    }

    stop.send(()).unwrap();
    // The response of a listener has no other end.
    let mut rest = String::new();
    events.read_to_string(&mut rest).await.unwrap();
    assert!(!rest.contains("data:"), "{rest}");
    server.await.unwrap().unwrap();
    assert_eq!(db.query("SELECT 1", ()).await.unwrap_err().kind(), flatwater::Kind::Closed);
}

#[tokio::test]
async fn a_listener_that_is_too_slow_is_told_so() {
    let db = TestDatabase::on_file(schema).await.unwrap();
    let service = router(App::new(&db));
    let request = Request::builder().uri("/events").body(Body::empty()).unwrap();
    let mut events = service.clone().oneshot(request).await.unwrap().into_body();
    send(&service, "POST", "/tasks", r#"{"title": "buy tea"}"#).await;
    for _ in 0..300 {
        send(&service, "PATCH", "/tasks/1", r#"{"state": "done"}"#).await;
    }
    let mut next = async || {
        let frame = events.frame().await.unwrap().unwrap().into_data().unwrap();
        String::from_utf8(frame.to_vec()).unwrap()
    };
    assert_eq!(next().await, "event: missed\ndata: 45\n\n");
    assert_eq!(next().await, "event: task\ndata: {\"what\":\"changed\",\"id\":1}\n\n");
}
