//! Runs the double until its standard input ends. Its first line of output is where it listens, as JSON.

fn main() {
    rqlite_double::run();
}
