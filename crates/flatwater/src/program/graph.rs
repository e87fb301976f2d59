//! What the program of a prepared statement looks like, and so whether it is short. Pure.
//!
//! Owns: the control-flow graph of a program and the shape that follows from it. Invariants: an acyclic program runs
//! each instruction a few times at most; between two looks at the progress handler a bounded one does the same; what
//! cannot be shown is opaque. Leaves out: single instructions (`opcodes`), when to learn (`learnt`), the size of rows.

use std::collections::HashSet;

use flatwater_sqlite::{Op, Program};

use super::opcodes::{Flow, flow, is_own_collation, is_short_function};

/// What keeps a program from being long.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Shape {
    /// It has no loop.
    Acyclic,
    /// Each of its loops passes an instruction where SQLite looks at the progress handler.
    Bounded,
    /// Nothing that can be shown; the instruction, function or collation that is to blame.
    Opaque(Box<str>),
}

/// What a connection has that is not SQLite's own, though it may be named like it. In lower case.
#[derive(Debug, Default)]
pub(crate) struct Strange {
    pub(crate) functions: HashSet<String>,
    pub(crate) collations: HashSet<String>,
}

/// A value that is longer than this ends an inline stay.
pub(crate) const INLINE_VALUE_BYTES: i32 = 64 * 1024;

/// The shape of the statement whose programs these are.
pub(crate) fn shape(programs: &[Program], strange: &Strange) -> Shape {
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

/// What of an instruction is opaque, if something is.
fn opaque_part(op: &Op, strange: &Strange) -> Option<Box<str>> {
    let p4 = op.p4.as_deref().unwrap_or_default();
    let is_opaque = match &*op.opcode {
        // It fills as many bytes as it says, for the filter of a join, under no limit.
        "Blob" => op.p4.is_none() && op.p1 > INLINE_VALUE_BYTES,
        // Where to go on if a record is corrupt.
        "Init" => op.p3 != 0,
        "Function" | "PureFunc" | "AggStep" | "AggFinal" => {
            let name = p4.split('(').next().unwrap_or_default().to_ascii_lowercase();
            if !is_short_function(p4) || strange.functions.contains(&name) {
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

/// The collations an instruction compares with: of a key, `k(2,-NOCASE,)`, or of one comparison, `NOCASE-8`.
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

/// The name of a collation in a key, without the marks of a descending order and of NULLs at the other end.
pub(crate) fn bare(name: &str) -> &str {
    let name = name.strip_prefix('-').unwrap_or(name);
    name.strip_prefix("N.").unwrap_or(name)
}

/// The way of a `Once` into its body is gone after the first time, so no loop goes through it again.
fn is_spent(program: &Program, from: usize, to: usize) -> bool {
    flow_of(program, from) == Flow::Once && to == from + 1
}

/// The instructions that put a row into a table of the statement's own.
fn fills(program: &Program, cursor: i32) -> impl Iterator<Item = usize> {
    (0..program.len()).filter(move |at| {
        let op = &program[*at];
        op.p1 == cursor && matches!(&*op.opcode, "Insert" | "IdxInsert")
    })
}

/// A table of the statement's own that a loop fills: it is given back in one piece when the statement ends.
fn growing_table(program: &Program, graph: &Graph) -> Option<Box<str>> {
    let grows = |op: &&Op| &*op.opcode == "OpenEphemeral" && fills(program, op.p1).any(|at| graph.reaches(at, at));
    program.iter().find(grows).map(|op| op.opcode.clone())
}

/// Whether this is the way back of a loop over a table of the statement's own that gets one row, as for RETURNING.
fn ends_after_one_row(program: &Program, graph: &Graph, from: usize, to: usize) -> bool {
    let cursor = program[from].p1;
    let opens = |op: &Op| &*op.opcode == "OpenEphemeral" && op.p1 == cursor;
    flow_of(program, from) == Flow::LookingBranch
        && to != from + 1
        && program.iter().any(opens)
        && fills(program, cursor).nth(1).is_none()
        && fills(program, cursor).all(|at| !graph.reaches(at, at))
}

/// Where control can go from each instruction. It can be more than in truth, never less.
pub(crate) struct Graph(Vec<Vec<usize>>);

impl Graph {
    pub(crate) fn of(program: &Program) -> Self {
        Self((0..program.len()).map(|at| ways(program, at)).collect())
    }

    pub(crate) fn without(&self, gone: impl Fn(usize, usize) -> bool) -> Self {
        let kept = |(from, ways): (usize, &Vec<usize>)| ways.iter().copied().filter(|to| !gone(from, *to)).collect();
        Self(self.0.iter().enumerate().map(kept).collect())
    }

    /// Whether a way of at least one step leads from one to the other.
    pub(crate) fn reaches(&self, from: usize, to: usize) -> bool {
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

    /// Takes away whatever nothing leads to, until nothing is left or only loops and what follows them.
    fn is_acyclic(&self) -> bool {
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

/// The addresses that follow on the one at `at`. One behind the end is a Halt.
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
        Flow::Return => of(&[Flow::Gosub, Flow::Yield]).chain([at]).map(|at| at + 1).collect(),
        Flow::Yield => {
            // P2 is where to go when the coroutine has ended, so who has none is the coroutine and not who asks it.
            let asks = op.p2 != 0 || of(&[Flow::EndCoroutine]).next().is_none();
            let begins = of(&[Flow::InitCoroutine]).filter(|_| asks).map(|at| address(program[at].p3));
            let others = of(&[Flow::Yield]).filter(|other| *other != at && (asks || program[*other].p2 != 0));
            begins.chain(others.map(|other| other + 1)).chain(of(&[Flow::EndCoroutine]).filter(|_| asks)).collect()
        }
        Flow::EndCoroutine => of(&[Flow::Yield]).map(|at| address(program[at].p2)).filter(|to| *to != 0).collect(),
        Flow::Halt => Vec::new(),
    };
    ways.retain(|to| *to < program.len());
    ways.sort_unstable();
    ways.dedup();
    ways
}
