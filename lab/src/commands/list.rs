//! `list`: prints the lanes and the peers.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

use crate::figures::result::Lane;
use crate::measuring::peer::{self, Peer};
use crate::measuring::process::Interrupt;
use crate::measuring::repository::Repository;

/// `list`.
#[derive(Args, Debug)]
pub struct ListArgs {
    /// Where peers are described
    #[arg(long, value_name = "DIR")]
    pub peers_dir: Option<PathBuf>,
    /// Where the peers' programs are built
    #[arg(long, value_name = "DIR")]
    pub target_dir: Option<PathBuf>,
    /// Build the peers first; those that are not built have nothing to say
    #[arg(long)]
    pub build: bool,
}

/// A lane: its name, its description, and the peers that have it.
type Known = (String, Lane, Vec<String>);

/// Prints every peer, and every lane of the peers that are built.
pub fn list(args: &ListArgs, interrupt: &Interrupt) -> Result<bool> {
    let peers_dir = match &args.peers_dir {
        Some(folder) => folder.clone(),
        None => Repository::here()?.peers(),
    };
    let target = std::path::absolute(args.target_dir.clone().unwrap_or_else(|| peers_dir.join("target")))?;
    let mut lanes: Vec<Known> = Vec::new();
    println!("Peers");
    for peer in peer::load(&peers_dir)? {
        println!("  {:<20} {}", peer.name, says(&peer, args.build, &target, interrupt, &mut lanes));
    }
    println!("\nLanes");
    if lanes.is_empty() {
        println!("  no peer is built: `flatwater-lab list --build`");
    }
    let mut groups: BTreeMap<&str, Vec<&Known>> = BTreeMap::new();
    for entry in &lanes {
        groups.entry(&entry.1.group).or_default().push(entry);
    }
    for (group, entries) in groups {
        println!("  {group}");
        for (name, lane, peers) in entries {
            println!("    {name:<28} {:<8} {} [{}]", lane.tag, lane.about, peers.join(" "));
        }
    }
    Ok(true)
}

/// Returns the description of a peer, and adds its lanes to the table.
fn says(peer: &Peer, build: bool, target: &std::path::Path, interrupt: &Interrupt, lanes: &mut Vec<Known>) -> String {
    if build && let Err(error) = peer.build(target, interrupt) {
        return format!("does not build: {error:#}");
    }
    let Ok(listing) = peer.list(target, interrupt) else {
        return format!("{} (not built)", peer.about);
    };
    let known = listing.lanes();
    for name in listing.lane_names() {
        match lanes.iter_mut().find(|(other, ..)| *other == name) {
            Some((_, _, peers)) => peers.push(peer.name.clone()),
            None => lanes.push((name.clone(), known[&name].clone(), vec![peer.name.clone()])),
        }
    }
    format!("{}, SQLite {}", listing.version, listing.sqlite)
}
