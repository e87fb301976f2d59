//! The tokens of calls that wait, and what is resumed for each.
//!
//! Owns: the table from tokens to waiting callers. Runs on the loop's thread. Invariant: a token is used once. A note
//! for a call that was given up may come late, when another call has its place in the table; the generation in the
//! token tells the two apart. It begins again after a million. Leaves out: who notes tokens (`inbox`).

/// What waits, by token: the place in the table in the lower half, its generation in the upper one. A token is below 2^52, so
/// that a number of JavaScript holds it.
#[derive(Debug)]
pub struct Tokens<T> {
    places: Vec<Place<T>>,
    free: Vec<u32>,
}

#[derive(Debug)]
struct Place<T> {
    generation: u32,
    waits: Option<T>,
}

const GENERATIONS: u32 = 1 << 20;

impl<T> Default for Tokens<T> {
    fn default() -> Self {
        Self { places: Vec::new(), free: Vec::new() }
    }
}

impl<T> Tokens<T> {
    /// Adds what waits, and returns its token.
    pub fn add(&mut self, waits: T) -> u64 {
        let index = self.free.pop().unwrap_or_else(|| {
            self.places.push(Place { generation: 0, waits: None });
            u32::try_from(self.places.len() - 1).unwrap_or(u32::MAX)
        });
        let place = &mut self.places[index as usize];
        place.waits = Some(waits);
        u64::from(place.generation) << 32 | u64::from(index)
    }

    /// Returns what waits for the token, which stays in use.
    pub fn get_mut(&mut self, token: u64) -> Option<&mut T> {
        self.place(token)?.1.waits.as_mut()
    }

    /// Returns what waits for the token, if it still does. The token is of no use afterwards.
    pub fn take(&mut self, token: u64) -> Option<T> {
        let (index, place) = self.place(token)?;
        let waits = place.waits.take()?;
        place.generation = (place.generation + 1) % GENERATIONS;
        self.free.push(index);
        Some(waits)
    }

    fn place(&mut self, token: u64) -> Option<(u32, &mut Place<T>)> {
        let index = u32::try_from(token & u64::from(u32::MAX)).ok()?;
        let place = self.places.get_mut(index as usize)?;
        (u64::from(place.generation) == token >> 32).then_some((index, place))
    }

    /// All that waits.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.places.iter_mut().filter_map(|place| place.waits.as_mut())
    }

    /// How many wait.
    #[must_use]
    pub fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }

    /// Returns true if nothing waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Removes and returns all that waits.
    pub fn clear(&mut self) -> Vec<T> {
        let tokens = self.places.iter().zip(0_u64..).map(|(place, index)| u64::from(place.generation) << 32 | index);
        tokens.collect::<Vec<_>>().into_iter().filter_map(|token| self.take(token)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_taken_once() {
        let mut tokens = Tokens::default();
        let (a, b) = (tokens.add("a"), tokens.add("b"));
        assert_eq!((tokens.take(b), tokens.take(b)), (Some("b"), None));
        assert_eq!((tokens.take(a), tokens.len()), (Some("a"), 0));
    }

    #[test]
    fn a_late_note_does_not_meet_the_call_that_has_the_place_now() {
        let mut tokens = Tokens::default();
        let before = tokens.add(1);
        assert_eq!(tokens.take(before), Some(1));
        let after = tokens.add(2);
        assert_eq!(after & u64::from(u32::MAX), before & u64::from(u32::MAX), "the place is used again");
        assert_eq!((tokens.take(before), tokens.take(after)), (None, Some(2)));
    }

    #[test]
    fn a_token_stays_in_use_while_it_is_only_looked_at() {
        let mut tokens = Tokens::default();
        let token = tokens.add(1);
        *tokens.get_mut(token).unwrap() += 1;
        assert_eq!((tokens.take(token), tokens.get_mut(token)), (Some(2), None));
    }

    #[test]
    fn all_that_waits_can_be_removed_and_unknown_tokens_are_nothing() {
        let mut tokens = Tokens::default();
        let first = tokens.add(1);
        tokens.add(2);
        tokens.take(first);
        tokens.add(3);
        let mut all = tokens.clear();
        all.sort_unstable();
        assert_eq!((all, tokens.is_empty()), (vec![2, 3], true));
        assert_eq!(tokens.take(u64::MAX), None);
    }
}
