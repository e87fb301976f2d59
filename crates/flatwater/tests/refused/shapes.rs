use flatwater::{FromRow, FromSql, ToSql};

#[derive(FromRow)]
enum Row {
    A,
}

#[derive(FromRow)]
struct Unit;

#[derive(FromSql)]
struct Two(i64, i64);

#[derive(ToSql)]
enum WithFields {
    A,
    B(i64),
}

#[derive(FromSql)]
#[flatwater(rename_all = "lowercase")]
enum Same {
    Open,
    OPEN,
}

#[derive(FromSql)]
#[repr(u8)]
enum Number {
    #[flatwater(rename = "a")]
    A,
}

#[derive(ToSql)]
#[repr(u64)]
enum TooLarge {
    A,
}

fn main() {}
