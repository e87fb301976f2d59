//! The pace of paced lanes: a share of what the floor reaches flat out, measured before the first trial, so that a lane
//! asks the same of every machine.
//!
//! Owns: which lanes are paced by which, and the trials that measure the floor. A floor that cannot be measured leaves the
//! lanes that it paces with an error in every row. Leaves out: the rates (`floor`), and how a trial is run (`session`).

use std::collections::BTreeMap;

use anyhow::{Result, bail};

use crate::figures::floor::{FLOOR, PacedBy, Rates};
use crate::figures::metric::OPS_PER_SECOND;
use crate::figures::result::distinct;
use crate::figures::statistics::median;
use crate::measuring::peer;
use crate::measuring::places::Places;
use crate::measuring::plan::Trial;
use crate::measuring::process::Interrupt;
use crate::measuring::session::{Settings, Side, one};

/// The floor's trials of which the middle rate counts.
const TRIALS: u32 = 3;

/// Returns what paces each of these lanes. Lanes that are not paced are left out.
pub fn paced(sides: &[Side], lanes: &[String]) -> BTreeMap<String, PacedBy> {
    let of = |lane: &String| Some((lane.clone(), sides.iter().find_map(|side| side.paced_by(lane))?));
    lanes.iter().filter_map(of).collect()
}

/// Measures the floor in every lane by which another is paced.
pub fn measure(
    paced: &BTreeMap<String, PacedBy>,
    sides: &[Side],
    places: &Places,
    settings: &Settings,
    interrupt: &Interrupt,
) -> Result<Rates> {
    let lanes = distinct(paced.values().map(|by| by.of.as_str()));
    if lanes.is_empty() {
        return Ok(Rates::new());
    }
    let prepared;
    let floor = match sides.iter().find(|side| side.name == FLOOR) {
        Some(side) => side,
        None => {
            prepared = prepare(places, interrupt);
            match &prepared {
                Ok(side) => side,
                Err(_) if interrupt.pressed() => bail!("interrupted before the first trial"),
                Err(error) => return Ok(lanes.iter().map(|lane| ((*lane).to_owned(), Err(error.clone()))).collect()),
            }
        }
    };
    Ok(lanes.into_iter().map(|lane| (lane.to_owned(), flat_out(floor, lane, settings, interrupt))).collect())
}

fn prepare(places: &Places, interrupt: &Interrupt) -> std::result::Result<Side, String> {
    let side = || {
        let floor = peer::choose(peer::load(places.peers)?, &[FLOOR.to_owned()])?.remove(0);
        Side::prepare(FLOOR, floor, places.target, None, interrupt)
    };
    side().map_err(|error| format!("{error:#}"))
}

fn flat_out(floor: &Side, lane: &str, settings: &Settings, interrupt: &Interrupt) -> std::result::Result<f64, String> {
    floor.listing.as_ref().map_err(Clone::clone)?;
    let trials = if settings.quick { 1 } else { TRIALS };
    let rates = (0..trials).map(|run| {
        let trial = Trial { lane, side: 0, run, order: 0 };
        let figures = one(floor, &trial, settings, interrupt).map_err(|error| format!("{error:#}"))?;
        figures.number(OPS_PER_SECOND).ok_or_else(|| "it has no rate".to_owned())
    });
    Ok(median(&rates.collect::<std::result::Result<Vec<f64>, String>>()?))
}
