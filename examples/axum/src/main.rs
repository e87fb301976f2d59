//! `cargo run -p flatwater-example-axum -- tasks.db`, and then `curl -N localhost:3000/events`.

use std::error::Error;

use flatwater::Options;
use flatwater_example_axum::{App, schema, serve};
use tokio::net::TcpListener;
use tokio::signal;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let path = std::env::args().nth(1).unwrap_or_else(|| "tasks.db".to_owned());
    let db = schema(Options::new(path)).open().await?;
    let listener = TcpListener::bind("127.0.0.1:3000").await?;
    println!("http://{}/tasks", listener.local_addr()?);
    serve(listener, App::new(&db), told_to_stop()).await
}

/// Ends at Ctrl-C, and at the SIGTERM of a service manager.
async fn told_to_stop() {
    #[cfg(unix)]
    {
        let mut terminated = signal::unix::signal(signal::unix::SignalKind::terminate()).expect("a handler of SIGTERM");
        tokio::select! {
            _ = signal::ctrl_c() => {}
            _ = terminated.recv() => {}
        }
    }
    #[cfg(not(unix))]
    let _ = signal::ctrl_c().await;
}
