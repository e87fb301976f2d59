//! The page of the guide: its commands run, and print what stands below them.

#![cfg(unix)]

use std::path::Path;
use std::process::Command;

use crate::support::Place;

/// Returns the commands of a page, each with the output below it.
fn commands(page: &str) -> Vec<(&str, String)> {
    let mut commands: Vec<(&str, String)> = Vec::new();
    let blocks = page.split("```console\n").skip(1).filter_map(|rest| rest.split("```").next());
    for line in blocks.flat_map(str::lines) {
        match line.strip_prefix("$ ") {
            Some(command) => commands.push((command, String::new())),
            None => {
                let (_, output) = commands.last_mut().expect("a block begins with a command");
                output.push_str(line);
                output.push('\n');
            }
        }
    }
    commands
}

#[test]
fn the_page_of_the_guide_is_true() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide/cli.md");
    let page = std::fs::read_to_string(page).unwrap();
    let place = Place::new();
    let folder = Path::new(env!("CARGO_BIN_EXE_flatwater")).parent().unwrap();
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap());
    let commands = commands(&page);
    assert!(commands.len() > 20, "only {} commands were seen", commands.len());
    for (command, expected) in commands {
        let shell = Command::new("sh")
            .args(["-c", &format!("({command}) 2>&1")])
            .env("PATH", &path)
            .current_dir(place.folder.path())
            .output()
            .unwrap();
        assert_eq!(String::from_utf8(shell.stdout).unwrap(), expected, "$ {command}");
    }
}
