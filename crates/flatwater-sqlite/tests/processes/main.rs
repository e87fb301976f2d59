//! What happens to a file when processes fork, or bring a second SQLite library along: one program, one module per
//! subject. It has `unsafe` in it, so it stands here and not with the engine's tests, though the engine is what it tests.
#![cfg(target_os = "linux")]

mod forked;
mod second_copy;
mod support;
mod turns;
