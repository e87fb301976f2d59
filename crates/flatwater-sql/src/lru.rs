//! A segmented LRU map: what was used once does not displace what is used again. Pure.
//!
//! Owns: which entry is evicted. Every operation takes constant time. Invariants: there are never more entries than the
//! limit; while there is any place left, nothing is evicted; new entries always have some places, so that a program
//! that goes on to other texts gets them kept as well. Leaves out: what is kept, and giving up what is evicted.

use std::borrow::Borrow;
use std::hash::Hash;

use hashlink::LruCache;
use hashlink::linked_hash_map::RawEntryMut;

/// A map of bounded size.
pub struct SegmentedLru<K: Eq + Hash, V> {
    /// What was used once since it was inserted, or has not been used for longest of what was used again.
    once: LruCache<K, V>,
    again: LruCache<K, V>,
    limit: usize,
    /// `again` is cut to this before an entry is evicted.
    most_again: usize,
}

impl<K: Eq + Hash, V> SegmentedLru<K, V> {
    /// Creates a map of at most `limit` entries, of which `new` places are only for entries that were used once.
    pub fn new(limit: usize, new: usize) -> Self {
        let (once, again) = (LruCache::new_unbounded(), LruCache::new_unbounded());
        Self { once, again, limit, most_again: limit.saturating_sub(new.max(1)) }
    }

    /// Returns the entry of `key`, and counts a use.
    #[inline]
    pub fn get<Q>(&mut self, key: &Q) -> Option<&mut V>
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        // What was used last is often used next, and then its place is right already.
        if self.again.iter().next_back().is_some_and(|(last, _)| last.borrow() == key) {
            return self.again.iter_mut().next_back().map(|(_, value)| value);
        }
        match self.again.raw_entry_mut().from_key(key) {
            RawEntryMut::Occupied(mut entry) => {
                entry.to_back();
                Some(entry.into_mut())
            }
            RawEntryMut::Vacant(entry) => {
                let (key, value) = self.once.remove_entry(key)?;
                Some(entry.insert(key, value).1)
            }
        }
    }

    /// Inserts an entry that is not in the map. `is_used_again` says that it was in the map before. Returns the value
    /// that is evicted.
    pub fn insert(&mut self, key: K, value: V, is_used_again: bool) -> Option<V> {
        let evicted = if self.len() < self.limit { None } else { self.evict() };
        let segment = if is_used_again { &mut self.again } else { &mut self.once };
        segment.insert(key, value);
        evicted
    }

    fn evict(&mut self) -> Option<V> {
        while self.again.len() > self.most_again
            && let Some((key, value)) = self.again.remove_lru()
        {
            self.once.insert(key, value);
        }
        self.once.remove_lru().map(|(_, value)| value)
    }

    /// Removes a value.
    pub fn remove<Q>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        self.again.remove(key).or_else(|| self.once.remove(key))
    }

    /// Removes all values.
    pub fn drain(&mut self) -> impl Iterator<Item = V> {
        self.once.drain().chain(self.again.drain()).map(|(_, value)| value)
    }

    /// Returns the number of values.
    pub fn len(&self) -> usize {
        self.once.len() + self.again.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Uses the entry, and inserts it if it is not there. Returns whether it was there.
    fn used(map: &mut SegmentedLru<u32, u32>, key: u32) -> bool {
        let was_there = map.get(&key).is_some();
        if !was_there {
            map.insert(key, key, false);
        }
        was_there
    }

    #[test]
    fn what_is_used_once_does_not_displace_what_was_used_again() {
        let mut map = SegmentedLru::new(8, 2);
        (0..6).chain(0..6).for_each(|key| _ = used(&mut map, key));
        (100..10_000).for_each(|key| assert!(!used(&mut map, key)));
        assert_eq!(map.len(), 8);
        assert!((0..6).all(|key| used(&mut map, key)));
    }

    #[test]
    fn every_place_is_used_whatever_is_used_how_often() {
        for rounds in [1, 2] {
            let mut map = SegmentedLru::new(8, 2);
            for key in (0..8).cycle().take(8 * rounds) {
                used(&mut map, key);
            }
            assert!((0..8).all(|key| used(&mut map, key)), "{rounds}");
        }
    }

    #[test]
    fn what_is_used_again_now_displaces_what_was_used_again_before() {
        let mut map = SegmentedLru::new(8, 2);
        (0..8).chain(0..8).for_each(|key| _ = used(&mut map, key));
        for key in 100..106 {
            used(&mut map, key);
            used(&mut map, key);
        }
        assert!((100..106).all(|key| used(&mut map, key)));
    }

    #[test]
    fn an_entry_that_is_known_to_be_used_again_displaces_the_oldest_of_its_like() {
        let mut map = SegmentedLru::new(4, 1);
        (0..3).for_each(|key| assert_eq!(map.insert(key, key, true), None));
        assert_eq!(map.insert(9, 9, false), None);
        assert_eq!(map.insert(3, 3, true), Some(9));
        assert_eq!(map.insert(4, 4, true), Some(0));
        assert!([1, 2, 3, 4].iter().all(|key| map.get(key).is_some()));
    }

    #[test]
    fn the_limit_holds_and_every_value_is_returned_once() {
        for limit in 1..6 {
            let mut map = SegmentedLru::new(limit, 1);
            let (mut inserted, mut gone) = (Vec::new(), Vec::new());
            let mut next = 7_u32;
            for value in 0..10_000 {
                // A random sequence that is the same in each run.
                next = next.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                let key = (next >> 16) % 9;
                match next >> 30 {
                    0 => gone.extend(map.remove(&key)),
                    1 | 2 if map.get(&key).is_some() => {}
                    way => {
                        gone.extend(map.remove(&key));
                        gone.extend(map.insert(key, value, way == 3));
                        inserted.push(value);
                        assert_eq!(map.get(&key), Some(&mut value.clone()), "evicted at once");
                    }
                }
                assert!(map.len() <= limit);
            }
            gone.extend(map.drain());
            gone.sort_unstable();
            assert_eq!(gone, inserted);
        }
    }
}
