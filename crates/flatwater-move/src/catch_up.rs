//! Bringing the target to where the source is.
//!
//! Owns: applying the log, and comparing all tables until they are equal. Invariant: an entry of the log goes when its row is on the target as
//! it is on the source. Leaves out: when it is done.

use std::collections::HashMap;

use flatwater::{Result, Value};

use crate::apply::{delete, put};
use crate::compare::{self, row};
use crate::log;
use crate::rows::same;
use crate::sides::Sides;
use crate::table::{Order, Table};

/// So many entries of the log are read at once.
const ENTRIES: usize = 1000;
/// Rows may need each other, so the last ones may be right after some rounds in which no fewer differed.
const IN_VAIN: usize = 3;

/// How many rows differed in the first comparison, and in the last one; and a table that had some.
#[derive(Default)]
pub(crate) struct Repaired {
    pub(crate) first: usize,
    pub(crate) last: usize,
    pub(crate) table: String,
}

impl Sides<'_> {
    /// Applies the log as it is now, until there is no entry of it that can be applied. Returns how many were.
    pub(crate) async fn catch_up(&self, tables: &[Table]) -> Result<u64> {
        let (mut applied, until) = (0, log::newest(self.from).await?);
        loop {
            let (mut behind, mut in_round) = (0, 0);
            loop {
                let entries = log::read(self.from, behind, until, ENTRIES).await?;
                let Some(last) = entries.last() else { break };
                behind = last.id;
                self.check().await?;
                in_round += self.apply(tables, entries).await?;
            }
            if in_round == 0 {
                return Ok(applied);
            }
            applied += in_round;
        }
    }

    /// Applies entries. Those that cannot be applied stay in the log.
    async fn apply(&self, tables: &[Table], entries: Vec<log::Entry>) -> Result<u64> {
        let mut ids: HashMap<(String, String), Vec<i64>> = HashMap::new();
        let mut keys: HashMap<String, Vec<Vec<Value>>> = HashMap::new();
        for log::Entry { id, of, mut key } in entries {
            let width = tables.iter().find(|table| table.name == of).map_or(0, |table| table.key.len());
            key.truncate(width);
            let of_key = ids.entry((of.clone(), same(&key))).or_default();
            if of_key.is_empty() {
                keys.entry(of).or_default().push(key);
            }
            of_key.push(id);
        }
        let (mut gone, mut refused) = (Vec::new(), Vec::new());
        for table in tables {
            let (mut rows, mut deleted) = (Vec::new(), Vec::new());
            for key in keys.remove(&table.name).unwrap_or_default() {
                match row(self.from, table, &key).await? {
                    Some(row) => rows.push(row),
                    None => deleted.push(key),
                }
            }
            refused.extend(put(self.to, table, rows).await?.into_iter().map(|row| (table, row)));
            gone.push((table, deleted));
        }
        // Those that refer to others first.
        for (table, deleted) in gone.into_iter().rev() {
            refused.extend(delete(self.to, table, deleted).await?.into_iter().map(|key| (table, key)));
        }
        for (table, row) in refused {
            ids.remove(&(table.name.clone(), same(&row[..table.key.len()])));
        }
        let applied: Vec<i64> = ids.into_values().flatten().collect();
        let number = applied.len() as u64;
        log::forget(self.from, applied).await?;
        Ok(number)
    }

    /// Compares all tables, until nothing differs, or no fewer rows do by now.
    pub(crate) async fn repair(&self, tables: &[Table]) -> Result<Repaired> {
        let mut repaired = Repaired::default();
        let (mut rounds, mut fewest, mut in_vain) = (0, usize::MAX, 0);
        while in_vain < IN_VAIN {
            let mut differ = 0;
            // A row may refer to one with a larger key, and that one to one with a larger key again.
            let order = if rounds % 2 == 0 { Order::Ascending } else { Order::Descending };
            for table in tables {
                let of_table = compare::repair(self, table, order).await?;
                if of_table > 0 {
                    repaired.table.clone_from(&table.name);
                }
                differ += of_table;
            }
            if rounds == 0 {
                repaired.first = differ;
            }
            repaired.last = differ;
            if differ == 0 {
                break;
            }
            in_vain = if differ < fewest { 0 } else { in_vain + 1 };
            (rounds, fewest) = (rounds + 1, fewest.min(differ));
        }
        Ok(repaired)
    }
}
