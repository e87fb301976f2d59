//! `cargo run -p flatwater-example-axum -- tasks.db`, and then <http://localhost:3000> in two tabs. A second argument is the
//! address to listen on.

use std::error::Error;

use flatwater::Options;
use flatwater_example_axum::{App, schema, serve};
use tokio::net::TcpListener;
use tokio::signal;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().unwrap_or_else(|| "tasks.db".to_owned());
    let address = arguments.next().unwrap_or_else(|| "127.0.0.1:3000".to_owned());
    let db = schema(Options::new(path)).open().await?;
    let listener = TcpListener::bind(address).await?;
    println!("http://{}", listener.local_addr()?);
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
