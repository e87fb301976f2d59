//! The values of columns of Arrow, in the forms in which they are stored.
//!
//! Owns: which types of Arrow are bound, and as what. Pure. Invariant: a value is stored unchanged or refused. Leaves out: rows
//! (`table`), the texts of dates, times and decimals (`table_texts`), and reading buffers (`capi::arrow_tables`).

use flatwater::ValueRef;

use crate::capi::arrow_tables::{Column, Field};
use crate::given::table_texts::{DAY, clock, date, decimal_text, half, moment};

/// What the values of a column are.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Form {
    Null,
    Truth,
    /// Of so many bytes.
    Signed(usize),
    Unsigned(usize),
    Half,
    Single,
    Double,
    /// A text, or a blob, of this layout.
    Bytes(Layout, bool),
    /// Days, or milliseconds, since 1970.
    Days,
    DaysInMilliseconds,
    /// So many of it are a second. The offset from UTC in seconds is written behind a moment, if there is one.
    Moment(i64, Option<i32>),
    /// The same of a time of day, of so many bytes.
    Clock(i64, usize),
    /// Of so many bytes, and its scale.
    Decimal(usize, i32),
    /// Indexes of so many bytes, signed or not, of values.
    Dictionary(usize, bool, Box<Form>),
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Layout {
    /// With offsets of 32 bits.
    Small,
    /// With offsets of 64 bits.
    Large,
    View,
    /// Of so many bytes each.
    Fixed(usize),
}

impl Form {
    /// Returns that of a column, or what the type is called that is not bound. `keeps_zones`: a moment is stored with its offset.
    pub(super) fn of(field: Field<'_>, keeps_zones: bool) -> Result<Self, String> {
        let format = field.format();
        let form = Self::parse(&format, keeps_zones).ok_or_else(|| called(&format))?;
        match (field.dictionary(), form) {
            (None, form) => Ok(form),
            (Some(values), Self::Signed(width)) => {
                Ok(Self::Dictionary(width, true, Box::new(Self::of(values, keeps_zones)?)))
            }
            (Some(values), Self::Unsigned(width)) => {
                Ok(Self::Dictionary(width, false, Box::new(Self::of(values, keeps_zones)?)))
            }
            (Some(_), _) => Err("a dictionary".to_owned()),
        }
    }

    fn parse(format: &str, keeps_zones: bool) -> Option<Self> {
        use Layout::{Fixed, Large, Small, View};
        let (kind, rest) = format.split_once(':').unwrap_or((format, ""));
        let a_second = |unit: &str| match unit {
            "s" => Some(1),
            "m" => Some(1_000),
            "u" => Some(1_000_000),
            "n" => Some(1_000_000_000),
            _ => None,
        };
        Some(match kind {
            "n" => Self::Null,
            "b" => Self::Truth,
            "c" => Self::Signed(1),
            "C" => Self::Unsigned(1),
            "s" => Self::Signed(2),
            "S" => Self::Unsigned(2),
            "i" => Self::Signed(4),
            "I" => Self::Unsigned(4),
            "l" => Self::Signed(8),
            "L" => Self::Unsigned(8),
            "e" => Self::Half,
            "f" => Self::Single,
            "g" => Self::Double,
            "u" => Self::Bytes(Small, true),
            "U" => Self::Bytes(Large, true),
            "vu" => Self::Bytes(View, true),
            "z" => Self::Bytes(Small, false),
            "Z" => Self::Bytes(Large, false),
            "vz" => Self::Bytes(View, false),
            "w" => Self::Bytes(Fixed(rest.parse().ok()?), false),
            "d" => decimal(rest)?,
            "tdD" => Self::Days,
            "tdm" => Self::DaysInMilliseconds,
            "tts" | "ttm" => Self::Clock(a_second(&kind[2..])?, 4),
            "ttu" | "ttn" => Self::Clock(a_second(&kind[2..])?, 8),
            _ => {
                let unit = a_second(kind.strip_prefix("ts")?)?;
                Self::Moment(unit, if keeps_zones && !rest.is_empty() { Some(offset(rest)?) } else { None })
            }
        })
    }

    /// The number of buffers that a column has at least.
    pub(super) fn buffers(&self) -> i64 {
        match self {
            Self::Null => 0,
            Self::Bytes(Layout::Small | Layout::Large, _) => 3,
            _ => 2,
        }
    }

    /// Calls `bound` with the value of a row, or returns what is wrong with it.
    pub(super) fn read(
        &self,
        column: Column<'_>,
        row: usize,
        bound: &mut dyn FnMut(ValueRef<'_>),
    ) -> Result<(), &'static str> {
        if *self == Self::Null || column.is_null(row) {
            bound(ValueRef::Null);
            return Ok(());
        }
        let mut text = |text: Option<String>| match text {
            Some(text) => {
                bound(ValueRef::Text(text.as_bytes()));
                Ok(())
            }
            None => Err(OUT_OF_RANGE),
        };
        match self {
            Self::Days => {
                return text(i64::from(i32::from_ne_bytes(column.number(row))).checked_mul(DAY).and_then(date));
            }
            Self::DaysInMilliseconds => return text(date(i64::from_ne_bytes(column.number(row)).div_euclid(1_000))),
            Self::Moment(unit, offset) => return text(moment(i64::from_ne_bytes(column.number(row)), *unit, *offset)),
            Self::Clock(unit, width) => return text(clock(signed(column, row, *width), *unit)),
            Self::Decimal(width, scale) => {
                return decimal_text(column.fixed(row, *width), *scale).and_then(|it| text(Some(it)));
            }
            Self::Dictionary(width, is_signed, values) => {
                let index = if *is_signed { signed(column, row, *width) } else { unsigned(column, row, *width)? };
                let (of, count) = column.dictionary().ok_or("it has no dictionary")?;
                let index =
                    usize::try_from(index).ok().filter(|index| *index < count && of.has_buffers(values.buffers()));
                return values.read(of, index.ok_or("its index is beyond the dictionary")?, bound);
            }
            _ => {}
        }
        bound(match self {
            Self::Truth => ValueRef::Integer(column.bit(row).into()),
            Self::Signed(width) => ValueRef::Integer(signed(column, row, *width)),
            Self::Unsigned(width) => ValueRef::Integer(unsigned(column, row, *width)?),
            Self::Half => ValueRef::Real(half(u16::from_ne_bytes(column.number(row)))),
            Self::Single => ValueRef::Real(f32::from_ne_bytes(column.number(row)).into()),
            Self::Double => ValueRef::Real(f64::from_ne_bytes(column.number(row))),
            Self::Bytes(layout, is_text) => {
                let bytes = match layout {
                    Layout::Small => column.bytes(row, false),
                    Layout::Large => column.bytes(row, true),
                    Layout::View => column.view(row),
                    Layout::Fixed(width) => column.fixed(row, *width),
                };
                if *is_text { ValueRef::Text(bytes) } else { ValueRef::Blob(bytes) }
            }
            _ => ValueRef::Null,
        });
        Ok(())
    }
}

const OUT_OF_RANGE: &str = "it is out of the range of dates and times, whose years are 0 to 9999";

fn signed(column: Column<'_>, row: usize, width: usize) -> i64 {
    match width {
        1 => i8::from_ne_bytes(column.number(row)).into(),
        2 => i16::from_ne_bytes(column.number(row)).into(),
        4 => i32::from_ne_bytes(column.number(row)).into(),
        _ => i64::from_ne_bytes(column.number(row)),
    }
}

fn unsigned(column: Column<'_>, row: usize, width: usize) -> Result<i64, &'static str> {
    Ok(match width {
        1 => u8::from_ne_bytes(column.number(row)).into(),
        2 => u16::from_ne_bytes(column.number(row)).into(),
        4 => u32::from_ne_bytes(column.number(row)).into(),
        _ => i64::try_from(u64::from_ne_bytes(column.number(row)))
            .map_err(|_| "an integer beyond 64 bits with a sign cannot be stored; cast it to text")?,
    })
}

/// The offset from UTC of a zone, if its name says it.
fn offset(zone: &str) -> Option<i32> {
    if ["UTC", "Etc/UTC", "Z"].contains(&zone) {
        return Some(0);
    }
    let sign = if zone.starts_with('-') { -1 } else { 1 };
    let (hours, minutes) = zone.strip_prefix(['+', '-'])?.split_once(':')?;
    Some(sign * (hours.parse::<i32>().ok()? * 3_600 + minutes.parse::<i32>().ok()? * 60))
}

/// Of `precision,scale[,bits]`.
fn decimal(rest: &str) -> Option<Form> {
    let mut numbers = rest.split(',').skip(1).map(str::parse::<i32>);
    let scale = numbers.next()?.ok()?;
    let bits = numbers.next().transpose().ok()?.unwrap_or(128);
    [32, 64, 128, 256].contains(&bits).then(|| Form::Decimal(usize::try_from(bits / 8).unwrap_or(16), scale))
}

/// What a type is called that is not bound.
fn called(format: &str) -> String {
    let kinds = [
        ("ts", "a moment in a zone whose offset is not known; convert it to UTC"),
        ("tD", "a duration"),
        ("ti", "an interval"),
        ("+s", "a struct"),
        ("+m", "a map"),
        ("+u", "a union"),
        ("+r", "run-end encoded"),
        ("+", "a list"),
    ];
    let kind = kinds.iter().find(|(begin, _)| format.starts_with(begin));
    kind.map_or_else(|| format!("of the format {format:?}"), |(_, name)| (*name).to_owned())
}
