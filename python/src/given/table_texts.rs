//! Numbers of Arrow as the texts of dates, times and decimals that are stored, and floats of 16 bits.
//!
//! Owns: the forms, which are those of Python's own types (`flatwater._given.values`). Pure. Invariant: of a moment and a time of day,
//! what is below a microsecond is cut off, as it is of a `pandas.Timestamp`; all else is whole or refused. Leaves out: which
//! columns have them (`table_values`).

use chrono::{DateTime, Datelike, NaiveDateTime, TimeDelta, Timelike};

pub(super) const DAY: i64 = 86_400;

/// A float of 16 bits: a sign, 5 bits of the exponent, 10 of the fraction.
pub(super) fn half(bits: u16) -> f64 {
    let sign = if bits >> 15 == 1 { -1.0 } else { 1.0 };
    let (exponent, fraction) = (i32::from(bits >> 10 & 0x1f), f64::from(bits & 0x3ff) / 1_024.0);
    sign * match exponent {
        0 => fraction * 2_f64.powi(-14),
        0x1f if fraction == 0.0 => f64::INFINITY,
        0x1f => f64::NAN,
        _ => (1.0 + fraction) * 2_f64.powi(exponent - 15),
    }
}

/// Seconds since 1970, and nanoseconds.
fn at(count: i64, unit: i64) -> Option<NaiveDateTime> {
    let nanoseconds = u32::try_from(count.rem_euclid(unit) * (1_000_000_000 / unit)).ok()?;
    let moment = DateTime::from_timestamp(count.div_euclid(unit), nanoseconds)?.naive_utc();
    (0..=9999).contains(&moment.year()).then_some(moment)
}

pub(super) fn date(seconds: i64) -> Option<String> {
    at(seconds, 1).map(|date| format!("{:04}-{:02}-{:02}", date.year(), date.month(), date.day()))
}

pub(super) fn moment(count: i64, unit: i64, offset: Option<i32>) -> Option<String> {
    let ahead = TimeDelta::seconds(offset.unwrap_or(0).into());
    let moment = at(count, unit)?.checked_add_signed(ahead).filter(|moment| (0..=9999).contains(&moment.year()))?;
    let date = format!("{:04}-{:02}-{:02}", moment.year(), moment.month(), moment.day());
    let time = time_of_day(moment.num_seconds_from_midnight(), moment.nanosecond() / 1_000);
    let zone = offset.map_or_else(String::new, |offset| {
        let sign = if offset < 0 { '-' } else { '+' };
        format!("{sign}{:02}:{:02}", offset.abs() / 3_600, offset.abs() / 60 % 60)
    });
    Some(format!("{date} {time}{zone}"))
}

pub(super) fn clock(count: i64, unit: i64) -> Option<String> {
    let seconds = u32::try_from(count.div_euclid(unit)).ok().filter(|seconds| i64::from(*seconds) < DAY)?;
    let microseconds = i128::from(count.rem_euclid(unit)) * 1_000_000 / i128::from(unit);
    Some(time_of_day(seconds, u32::try_from(microseconds).ok()?))
}

fn time_of_day(seconds: u32, microseconds: u32) -> String {
    let text = format!("{:02}:{:02}:{:02}", seconds / 3_600, seconds / 60 % 60, seconds % 60);
    if microseconds == 0 { text } else { format!("{text}.{microseconds:06}") }
}

/// The digits, with the zeros of its scale. A column of numbers keeps 15 of them, or an integer of 64 bits
/// (<https://sqlite.org/datatype3.html>): what has more is refused, as a `Decimal` of Python's is.
pub(super) fn decimal_text(bytes: &[u8], scale: i32) -> Result<String, &'static str> {
    const MORE: &str = "a column of numbers keeps 15 digits of a decimal, and this one has more; cast it to text";
    let (low, high) = if cfg!(target_endian = "little") {
        bytes.split_at(bytes.len().min(16))
    } else {
        let (high, low) = bytes.split_at(bytes.len() - bytes.len().min(16));
        (low, high)
    };
    let is_negative = if cfg!(target_endian = "little") { low[low.len() - 1] } else { low[0] } >> 7 == 1;
    let filling = if is_negative { 0xff } else { 0 };
    if high.iter().any(|byte| *byte != filling) {
        return Err(MORE);
    }
    let mut wide = [filling; 16];
    let number = if cfg!(target_endian = "little") {
        wide[..low.len()].copy_from_slice(low);
        i128::from_le_bytes(wide)
    } else {
        wide[16 - low.len()..].copy_from_slice(low);
        i128::from_be_bytes(wide)
    };
    let digits = number.unsigned_abs().to_string();
    let places = usize::try_from(scale.max(0)).unwrap_or(0);
    let (whole, fraction) = match scale {
        ..=0 => (digits.clone() + &"0".repeat(usize::try_from(-scale).unwrap_or(0)), String::new()),
        _ => {
            let padded = format!("{digits:0>width$}", width = places + 1);
            let (whole, fraction) = padded.split_at(padded.len() - places);
            (whole.to_owned(), format!(".{fraction}"))
        }
    };
    let sign = if number < 0 { "-" } else { "" };
    let is_whole = fraction.bytes().all(|digit| digit == b'0' || digit == b'.');
    let is_short = digits.trim_matches('0').len() <= 15 && whole.len() < 300 && places < 300;
    match is_short || (is_whole && format!("{sign}{whole}").parse::<i64>().is_ok()) {
        true if number == 0 => Ok(if places == 0 { "0".to_owned() } else { format!("0.{}", "0".repeat(places)) }),
        true => Ok(format!("{sign}{whole}{fraction}")),
        false => Err(MORE),
    }
}
