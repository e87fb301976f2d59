//! Analyzes the bytecode program of a prepared statement to decide whether it is short. Pure.
//!
//! Owns: the control-flow graph of a program, and the shape derived from it. Invariants: an acyclic program runs each
//! instruction a few times at most; a bounded program does so between two calls of the progress handler; a program
//! about which neither can be proved is opaque. Leaves out: properties of single instructions (`opcodes`), when a
//! program is analysed (`connection::learn::analyse`), the size of rows.

use std::collections::HashSet;

use flatwater_sqlite::{Op, Program};

use super::opcodes::{Flow, flow, is_own_collation, is_short_function};

/// The property that limits how long a program runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Shape {
    /// The program has no loop.
    Acyclic,
    /// Each loop of the program contains an instruction that checks the progress handler.
    Bounded,
    /// Neither can be proved. Contains the instruction, function or collation that is the cause.
    Opaque(Box<str>),
}

/// Functions and collations of a connection that are not SQLite's own, even if they have the name of a built-in one. In
/// lower case.
#[derive(Debug, Default)]
pub struct Strange {
    /// Functions of the program.
    pub functions: HashSet<String>,
    /// Those of them that are short, with their number of arguments: `name(1)`.
    pub short: HashSet<String>,
    /// Those of which the history of a statement shows whether they are short, likewise.
    pub timed: HashSet<String>,
    /// The names of those that are not short, of which nothing is known.
    pub unknown: HashSet<String>,
    /// Collations of the program.
    pub collations: HashSet<String>,
}

/// A value longer than this ends an inline run.
pub const INLINE_VALUE_BYTES: i32 = 64 * 1024;

/// Returns the shape of the statement that consists of `programs`.
pub fn shape(programs: &[Program], strange: &Strange) -> Shape {
    let [program] = programs else { return Shape::Opaque("Program".into()) };
    if let Some(blamed) = program.iter().find_map(|op| opaque_part(op, strange)) {
        return Shape::Opaque(blamed);
    }
    let graph = Graph::of(program).without(|from, to| is_spent(program, from, to));
    if let Some(blamed) = growing_table(program, &graph) {
        return Shape::Opaque(blamed);
    }
    let graph = graph.without(|from, to| ends_after_one_row(program, &graph, from, to));
    if graph.is_acyclic() {
        Shape::Acyclic
    } else if graph.without(|from, _| flow_of(program, from).looks()).is_acyclic() {
        Shape::Bounded
    } else {
        Shape::Opaque("a loop without a look".into())
    }
}

fn flow_of(program: &Program, at: usize) -> Flow {
    flow(&program[at].opcode).unwrap_or(Flow::Opaque)
}

/// Returns the part of an instruction that is opaque, if any.
fn opaque_part(op: &Op, strange: &Strange) -> Option<Box<str>> {
    let p4 = op.p4.as_deref().unwrap_or_default();
    let is_opaque = match &*op.opcode {
        // For the filter of a join, this fills P1 bytes, which no limit restricts.
        "Blob" => op.p4.is_none() && op.p1 > INLINE_VALUE_BYTES,
        // P3 is the address to continue at if a record is corrupt.
        "Init" => op.p3 != 0,
        "Function" | "PureFunc" | "AggStep" | "AggFinal" => {
            let name = p4.split('(').next().unwrap_or_default().to_ascii_lowercase();
            let is_own = is_short_function(p4) && !strange.functions.contains(&name);
            if !is_own && !strange.short.contains(p4) && !strange.timed.contains(p4) {
                return Some(p4.into());
            }
            false
        }
        opcode => flow(opcode).is_none_or(|flow| flow == Flow::Opaque),
    };
    if is_opaque {
        return Some(op.opcode.clone());
    }
    let is_strange = |name: &&str| !is_own_collation(name) || strange.collations.contains(&name.to_ascii_lowercase());
    collations(op).into_iter().find(is_strange).map(Into::into)
}

/// Returns the collations an instruction compares with: of a key, `k(2,-NOCASE,)`, or of one comparison, `NOCASE-8`.
fn collations(op: &Op) -> Vec<&str> {
    let p4 = op.p4.as_deref().unwrap_or_default();
    match &*op.opcode {
        "CollSeq" | "Eq" | "Ge" | "Gt" | "Le" | "Lt" | "Ne" => vec![p4.rsplit_once('-').map_or(p4, |(name, _)| name)],
        "Compare" | "OpenEphemeral" | "OpenRead" | "OpenWrite" | "ReopenIdx" => {
            let key = p4.strip_prefix("k(").and_then(|key| key.strip_suffix(')'));
            key.map(|key| key.split(',').skip(1).map(bare).collect()).unwrap_or_default()
        }
        _ => Vec::new(),
    }
}

/// Returns the name of a collation in a key, without the marks for descending order and for the position of NULLs.
pub fn bare(name: &str) -> &str {
    let name = name.strip_prefix('-').unwrap_or(name);
    name.strip_prefix("N.").unwrap_or(name)
}

/// Returns whether this is the edge of a `Once` into its body. The edge is taken only once, so no loop contains it.
fn is_spent(program: &Program, from: usize, to: usize) -> bool {
    flow_of(program, from) == Flow::Once && to == from + 1
}

/// Returns the instructions that insert a row into the statement's ephemeral table at `cursor`.
fn fills(program: &Program, cursor: i32) -> impl Iterator<Item = usize> {
    (0..program.len()).filter(move |at| {
        let op = &program[*at];
        op.p1 == cursor && matches!(&*op.opcode, "Insert" | "IdxInsert")
    })
}

/// Returns the instruction that opens an ephemeral table that a loop fills. SQLite frees such a table in one step when
/// the statement ends.
fn growing_table(program: &Program, graph: &Graph) -> Option<Box<str>> {
    let grows = |op: &&Op| &*op.opcode == "OpenEphemeral" && fills(program, op.p1).any(|at| graph.reaches(at, at));
    program.iter().find(grows).map(|op| op.opcode.clone())
}

/// Returns whether this is the back edge of a loop over an ephemeral table that gets one row, as for RETURNING.
fn ends_after_one_row(program: &Program, graph: &Graph, from: usize, to: usize) -> bool {
    let cursor = program[from].p1;
    let opens = |op: &Op| &*op.opcode == "OpenEphemeral" && op.p1 == cursor;
    flow_of(program, from) == Flow::LookingBranch
        && to != from + 1
        && program.iter().any(opens)
        && fills(program, cursor).nth(1).is_none()
        && fills(program, cursor).all(|at| !graph.reaches(at, at))
}

/// The possible successors of each instruction. The graph may contain edges that cannot be taken, but never lacks one
/// that can.
pub struct Graph(Vec<Vec<usize>>);

impl Graph {
    /// Makes that of a program.
    pub fn of(program: &Program) -> Self {
        Self((0..program.len()).map(|at| ways(program, at)).collect())
    }

    /// Returns the instructions that may follow the one at an address; after an opaque one there may be others.
    pub fn next(&self, at: usize) -> &[usize] {
        &self.0[at]
    }

    /// Returns the graph without some edges.
    pub fn without(&self, gone: impl Fn(usize, usize) -> bool) -> Self {
        let kept = |(from, ways): (usize, &Vec<usize>)| ways.iter().copied().filter(|to| !gone(from, *to)).collect();
        Self(self.0.iter().enumerate().map(kept).collect())
    }

    /// Returns whether an edge is such a one.
    pub fn has(&self, is_such: impl Fn(usize, usize) -> bool) -> bool {
        self.0.iter().enumerate().any(|(from, ways)| ways.iter().any(|to| is_such(from, *to)))
    }

    /// Returns whether a path of at least one step leads from `from` to `to`.
    pub fn reaches(&self, from: usize, to: usize) -> bool {
        let mut seen = vec![false; self.0.len()];
        let mut next = vec![from];
        while let Some(at) = next.pop() {
            for way in &self.0[at] {
                if *way == to {
                    return true;
                }
                if !std::mem::replace(&mut seen[*way], true) {
                    next.push(*way);
                }
            }
        }
        false
    }

    /// Removes nodes without predecessors until there are none. The graph is acyclic if no node is left.
    pub fn is_acyclic(&self) -> bool {
        let mut leading = vec![0_u32; self.0.len()];
        self.0.iter().flatten().for_each(|to| leading[*to] += 1);
        let mut free: Vec<usize> = (0..leading.len()).filter(|at| leading[*at] == 0).collect();
        let mut taken = 0;
        while let Some(at) = free.pop() {
            taken += 1;
            for to in &self.0[at] {
                leading[*to] -= 1;
                if leading[*to] == 0 {
                    free.push(*to);
                }
            }
        }
        taken == self.0.len()
    }
}

/// Returns the addresses that can follow the instruction at `at`. An address beyond the end is a Halt.
fn ways(program: &Program, at: usize) -> Vec<usize> {
    let op = &program[at];
    let address = |p: i32| usize::try_from(p).unwrap_or(usize::MAX);
    let of = |flows: &'static [Flow]| {
        let same = move |at: &usize| program[*at].p1 == op.p1 && flows.contains(&flow_of(program, *at));
        (0..program.len()).filter(same)
    };
    let mut ways = match flow_of(program, at) {
        Flow::On | Flow::Opaque => vec![at + 1],
        Flow::Branch | Flow::LookingBranch | Flow::InitCoroutine if op.p2 == 0 => vec![at + 1],
        Flow::Branch | Flow::LookingBranch | Flow::Once => vec![at + 1, address(op.p2)],
        Flow::Goto | Flow::Gosub | Flow::InitCoroutine => vec![address(op.p2)],
        Flow::Jump => [op.p1, op.p2, op.p3].map(address).to_vec(),
        // With P3 it goes on if there is no address in the register.
        Flow::Return if op.p3 == 0 => of(&[Flow::Gosub, Flow::Yield]).map(|at| at + 1).collect(),
        Flow::Return => of(&[Flow::Gosub, Flow::Yield]).chain([at]).map(|at| at + 1).collect(),
        Flow::Yield => {
            // P2 is the address to continue at after the coroutine has ended. So a `Yield` without P2 is in the
            // coroutine itself, not in its caller.
            let resumes = op.p2 != 0 || of(&[Flow::EndCoroutine]).next().is_none();
            let begins = of(&[Flow::InitCoroutine]).filter(|_| resumes).map(|at| address(program[at].p3));
            let others = of(&[Flow::Yield]).filter(|other| *other != at && (resumes || program[*other].p2 != 0));
            begins.chain(others.map(|other| other + 1)).chain(of(&[Flow::EndCoroutine]).filter(|_| resumes)).collect()
        }
        Flow::EndCoroutine => of(&[Flow::Yield]).map(|at| address(program[at].p2)).filter(|to| *to != 0).collect(),
        Flow::Halt => Vec::new(),
    };
    ways.retain(|to| *to < program.len());
    ways.sort_unstable();
    ways.dedup();
    ways
}
