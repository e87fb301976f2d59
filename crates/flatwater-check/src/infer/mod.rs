//! What the columns of a result may hold, and what is put in the place of parameters: found by following a statement's program.
//!
//! Owns: the fixed point over the program's instructions. Invariants: every way that SQLite can take is followed, and some that it
//! cannot; of a program with an instruction that is not known nothing is said. Leaves out: what each instruction does (`step`), what
//! is known of tables (`catalogue`).

mod cursors;
mod expressions;
mod functions;
mod state;
mod step;
mod uses;
pub(crate) mod value;

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap};

use flatwater_sql::bytecode::graph::Graph;
use flatwater_sqlite::{Op, Program};

use crate::catalogue::Catalogue;
use crate::declared::Function;
use cursors::Cursors;
use state::State;
pub(crate) use uses::{Use, Uses};
use value::{Value, records};

/// What a program was found to do.
#[derive(Debug)]
pub(crate) struct Found {
    /// The columns of a result, one value each; `None` if no row is returned, or an instruction is not known.
    pub(crate) columns: Option<Vec<Value>>,
    pub(crate) uses: Uses,
    /// The tables of which every row is read.
    pub(crate) scans: Vec<String>,
}

/// Follows a program.
pub(crate) fn infer(program: &Program, catalogue: &Catalogue, functions: &[Function]) -> Found {
    let mut machine = Machine {
        program,
        graph: Graph::of(program),
        functions,
        cursors: Cursors::of(program, catalogue),
        columns: None,
        uses: Uses::default(),
    };
    let flags = flags(program);
    // Apart from flags a loop over four outer joins has sixteen states; a text with more is followed without them.
    let known = machine.run(&flags, VISITS).or_else(|_| machine.run(&[], VISITS * 10));
    let columns = machine.columns.filter(|_| known.is_ok()).map(|columns| columns.to_vec());
    Found { columns, uses: machine.uses, scans: machine.cursors.scans(program) }
}

/// The program cannot be followed: an instruction is not known, or there are too many states.
#[derive(Debug)]
struct Unknown;

/// So many instructions are followed.
const VISITS: usize = 20_000;

/// Registers on which jumps depend and whose value is a constant at times: whether a group has a row, whether an outer join has found
/// one, where a subroutine returns to. States in which their constants differ are kept apart.
fn flags(program: &Program) -> Vec<i32> {
    let sets = |op: &Op, register| match &*op.opcode {
        "Integer" => op.p2 == register,
        "CollSeq" => op.p1 == register,
        _ => false,
    };
    let is_constant = |register: i32| program.iter().any(|op| sets(op, register));
    let is_flag = |op: &&Op| match &*op.opcode {
        "If" | "IfNot" | "IfPos" => is_constant(op.p1),
        "Gosub" | "InitCoroutine" => true,
        _ => false,
    };
    program.iter().filter(is_flag).map(|op| op.p1).collect::<BTreeSet<_>>().into_iter().collect()
}

struct Machine<'a> {
    program: &'a Program,
    graph: Graph,
    functions: &'a [Function],
    cursors: Cursors,
    columns: Option<std::sync::Arc<[Value]>>,
    uses: Uses,
}

/// An instruction, and the constants of the flags before it.
type Place = (usize, Vec<Option<i32>>);

impl Machine<'_> {
    /// Follows the program until nothing new is found.
    fn run(&mut self, flags: &[i32], visits: usize) -> Result<(), Unknown> {
        let mut left = visits;
        loop {
            let before = self.cursors.contents().clone();
            self.follow(flags, &mut left)?;
            // What a table of the statement holds is known only at the end, and may be read before.
            if *self.cursors.contents() == before {
                return Ok(());
            }
        }
    }

    fn follow(&mut self, flags: &[i32], left: &mut usize) -> Result<(), Unknown> {
        let place = |at: usize, state: &State| (at, flags.iter().map(|flag| state.get(*flag).constant).collect());
        let first: Place = place(0, &State::default());
        let mut states: HashMap<Place, State> = HashMap::from([(first.clone(), State::default())]);
        let mut next = BTreeSet::from([first]);
        while let Some(here) = next.pop_first() {
            *left = left.checked_sub(1).ok_or(Unknown)?;
            let at = here.0;
            let op = &self.program[at];
            let mut state = states[&here].clone();
            self.step(at, op, &mut state)?;
            for to in self.ways(at) {
                let Some(after) = taken(self.program, at, to, &state) else { continue };
                let there = place(to, &after);
                let is_new = match states.entry(there.clone()) {
                    Entry::Occupied(mut known) => known.get_mut().join(&after),
                    Entry::Vacant(place) => {
                        place.insert(after);
                        true
                    }
                };
                if is_new {
                    next.insert(there);
                }
            }
        }
        Ok(())
    }

    /// The instructions that may follow.
    fn ways(&self, at: usize) -> Vec<usize> {
        let op = &self.program[at];
        let mut ways = self.graph.next(at).to_vec();
        // What jumps of those that the graph does not follow.
        let jumps = matches!(
            &*op.opcode,
            "Program"
                | "RowSetRead"
                | "RowSetTest"
                | "SorterCompare"
                | "SorterNext"
                | "SorterSort"
                | "VFilter"
                | "VNext"
        );
        if let Some(to) = usize::try_from(op.p2).ok().filter(|to| jumps && *to < self.program.len())
            && !ways.contains(&to)
        {
            ways.push(to);
        }
        ways
    }

    fn result(&mut self, row: &[Value]) {
        let known = self.columns.take();
        self.columns = Some(known.map_or_else(|| row.into(), |known| records(&known, row)));
    }
}

/// Whether an instruction moves a cursor, and jumps if it finds a row, or if it finds none.
fn moves(op: &Op) -> bool {
    matches!(
        &*op.opcode,
        "Rewind"
            | "Sort"
            | "SorterSort"
            | "Last"
            | "NotExists"
            | "NotFound"
            | "NoConflict"
            | "SeekRowid"
            | "SeekGE"
            | "SeekGT"
            | "SeekLE"
            | "SeekLT"
            | "VFilter"
            | "Next"
            | "Prev"
            | "SorterNext"
            | "VNext"
            | "Found"
    )
}

/// The state on the way to an instruction; `None` if that way cannot be taken.
fn taken(program: &Program, at: usize, to: usize, state: &State) -> Option<State> {
    let op = &program[at];
    if !is_return_address(program, op, to, state) {
        return None;
    }
    let jump = usize::try_from(op.p2) == Ok(to);
    let mut after = state.clone();
    if jump && to == at + 1 && &*op.opcode != "Yield" {
        // Both ways of a jump lead there; or P2 is no address, and is the same number.
        if moves(op) {
            after.set_without_row(op.p1, true);
        }
        if matches!(&*op.opcode, "IfNullRow" | "RowSetRead") {
            after.refine(op.p3, Value::nullable);
        }
        return Some(after);
    }
    let value = state.get(op.p1);
    let is_true = value.constant.map(|constant| if &*op.opcode == "IfPos" { constant > 0 } else { constant != 0 });
    match &*op.opcode {
        "IsNull" | "NotNull" if jump == (&*op.opcode == "IsNull") => {
            if !value.null {
                return None;
            }
            after.refine(op.p1, |_| Value::NULL);
        }
        "IsNull" | "NotNull" => after.refine(op.p1, Value::not_null),
        "If" | "IfPos" if is_true.is_some_and(|is_true| is_true != jump) => return None,
        "IfNot" if is_true.is_some_and(|is_true| is_true == jump) => return None,
        // Behind the last row, and where no row was found, every column is NULL.
        "Next" | "Prev" | "SorterNext" | "VNext" | "Found" => after.set_without_row(op.p1, !jump),
        _ if moves(op) => after.set_without_row(op.p1, jump),
        "IfNullRow" if jump && !state.may_be_without_row(op.p1) => return None,
        "IfNullRow" if jump => after.set(op.p3, Value::NULL),
        "Init" if !jump => return None,
        "Yield" => after.set(op.p1, Value::constant(i32::try_from(at).ok())),
        "RowSetRead" if jump => after.set(op.p3, Value::NULL),
        "IfNullRow" => after.set_without_row(op.p1, false),
        _ => {}
    }
    Some(after)
}

/// Whether a subroutine or a coroutine may return to this address, by what is known of the register that has it.
fn is_return_address(program: &Program, op: &Op, to: usize, state: &State) -> bool {
    let constant = state.get(op.p1).constant.and_then(|from| usize::try_from(from).ok());
    match (&*op.opcode, constant) {
        ("Return" | "Yield", Some(from)) => to == from + 1,
        ("EndCoroutine", Some(from)) => program.get(from).is_some_and(|caller| usize::try_from(caller.p2) == Ok(to)),
        _ => true,
    }
}
