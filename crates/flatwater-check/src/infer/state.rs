//! What is known at one instruction of a program: of each register, and of each cursor.
//!
//! Owns: the state, and joining two. Invariants: a register that nothing has written on any way is not known to exist, which is less
//! than any value; a cursor may be on no row until an instruction says otherwise. Leaves out: what instructions do (`step`).

use super::value::Value;

/// The state before an instruction.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct State {
    registers: Vec<Option<Value>>,
    /// Whether each cursor may be on no row, where every column is NULL.
    without_row: Vec<bool>,
}

fn at<T: Clone + Default>(list: &mut Vec<T>, place: i32) -> Option<&mut T> {
    let place = usize::try_from(place).ok()?;
    if list.len() <= place {
        list.resize(place + 1, T::default());
    }
    Some(&mut list[place])
}

impl State {
    /// The value in a register. One that was never written is not read in any run.
    pub(super) fn get(&self, register: i32) -> Value {
        let known = usize::try_from(register).ok().and_then(|register| self.registers.get(register)).cloned();
        known.flatten().unwrap_or(Value::NOTHING)
    }

    /// The values of `count` registers.
    pub(super) fn all(&self, from: i32, count: i32) -> Vec<Value> {
        (from..from.saturating_add(count.max(0))).map(|register| self.get(register)).collect()
    }

    pub(super) fn set(&mut self, register: i32, value: Value) {
        if let Some(place) = at(&mut self.registers, register) {
            *place = Some(value);
        }
    }

    /// Changes what is known of a register that was written.
    pub(super) fn refine(&mut self, register: i32, by: impl FnOnce(Value) -> Value) {
        if let Some(place) = at(&mut self.registers, register) {
            *place = place.take().map(by);
        }
    }

    pub(super) fn may_be_without_row(&self, cursor: i32) -> bool {
        usize::try_from(cursor).ok().and_then(|cursor| self.without_row.get(cursor)).copied().unwrap_or(false)
    }

    pub(super) fn set_without_row(&mut self, cursor: i32, without: bool) {
        if let Some(place) = at(&mut self.without_row, cursor) {
            *place = without;
        }
    }

    /// Adds what is known on another way to the same place. Returns whether that changed anything.
    pub(super) fn join(&mut self, other: &Self) -> bool {
        let mut changed = false;
        for (register, value) in other.registers.iter().enumerate() {
            let Some(value) = value else { continue };
            let Some(own) = at(&mut self.registers, i32::try_from(register).unwrap_or(-1)) else { continue };
            let joined = own.as_ref().map_or_else(|| value.clone(), |own| own.or(value));
            if own.as_ref() != Some(&joined) {
                (*own, changed) = (Some(joined), true);
            }
        }
        for (cursor, without) in other.without_row.iter().enumerate() {
            let Some(own) = at(&mut self.without_row, i32::try_from(cursor).unwrap_or(-1)) else { continue };
            if *without && !*own {
                (*own, changed) = (true, true);
            }
        }
        changed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_of_two_ways_knows_what_both_know() {
        let (mut one, mut other) = (State::default(), State::default());
        one.set(1, Value::INTEGER);
        other.set(1, Value::NULL);
        other.set(2, Value::INTEGER);
        other.set_without_row(0, true);
        assert!(one.join(&other) && !one.join(&other));
        assert!(one.get(1).null && !one.get(2).null && one.may_be_without_row(0) && !one.may_be_without_row(1));
    }
}
