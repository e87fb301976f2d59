//! Hosts for the nodes of a cluster: network namespaces of this machine, so that one can be cut off.
//!
//! Each has two networks, of which this process is in one: `served` is for clients, `between` is for the nodes.

use std::process::{Command, Stdio};

/// So many hosts.
const HOSTS: usize = 3;

pub(super) struct Network {
    /// The beginning of all names: at most 15 bytes are in the name of an interface.
    name: String,
    /// The second part of all addresses.
    number: u32,
}

fn ip(arguments: &str) -> bool {
    let run = Command::new("ip").args(arguments.split(' ')).stdout(Stdio::null()).stderr(Stdio::null()).status();
    run.is_ok_and(|status| status.success())
}

impl Network {
    /// Makes one. None if this process may not.
    pub(super) fn new() -> Option<Self> {
        let id = std::process::id();
        let network = Self { name: format!("fw{}", id % 1_000_000), number: 20 + id % 200 };
        // What is half made goes with it.
        network.make().then_some(network)
    }

    fn make(&self) -> bool {
        let Self { name, number } = self;
        let bridge =
            |side: &str| ip(&format!("link add {name}{side} type bridge")) && ip(&format!("link set {name}{side} up"));
        let host = |at: usize| ip(&format!("netns add {name}h{at}")) && self.plug(at, "b", 1) && self.plug(at, "s", 2);
        bridge("b") && bridge("s") && ip(&format!("addr add 10.{number}.2.254/24 dev {name}s")) && (0..HOSTS).all(host)
    }

    /// Connects a host to one of the two networks.
    fn plug(&self, at: usize, side: &str, net: u8) -> bool {
        let Self { name, number } = self;
        let (plug, host) = (format!("{name}{side}{at}"), format!("{name}h{at}"));
        let own = if side == "b" { "between" } else { "served" };
        ip(&format!("link add {plug} type veth peer name {own} netns {host}"))
            && ip(&format!("link set {plug} master {name}{side} up"))
            && ip(&format!("-n {host} addr add 10.{number}.{net}.{}/24 dev {own}", at + 1))
            && ip(&format!("-n {host} link set {own} up"))
            && ip(&format!("-n {host} link set lo up"))
    }

    /// The address of a host for clients.
    pub(super) fn served(&self, at: usize) -> String {
        format!("10.{}.2.{}", self.number, at + 1)
    }

    /// The address of a host for the others.
    pub(super) fn between(&self, at: usize) -> String {
        format!("10.{}.1.{}", self.number, at + 1)
    }

    /// What has a command run on a host.
    pub(super) fn on(&self, at: usize) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &format!("{}h{at}", self.name)]);
        command
    }

    /// Cuts a host off from the others, or from its clients, or heals that.
    pub(super) fn set(&self, at: usize, side: Side, is_up: bool) {
        let side = if side == Side::Between { "b" } else { "s" };
        let state = if is_up { "up" } else { "down" };
        assert!(ip(&format!("link set {}{side}{at} {state}", self.name)), "{side}{at} {state}");
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Between,
    Served,
}

impl Drop for Network {
    fn drop(&mut self) {
        // The interfaces of a host go with it.
        for at in 0..HOSTS {
            ip(&format!("netns del {}h{at}", self.name));
        }
        for side in ["b", "s"] {
            ip(&format!("link del {}{side}", self.name));
        }
    }
}
