use flatwater::FromRow;

struct NoValue;

#[derive(FromRow)]
struct Plain {
    id: i64,
    field: NoValue,
}

#[derive(FromRow)]
struct Flattened {
    #[flatwater(flatten)]
    field: NoValue,
}

#[derive(FromRow)]
struct Converted {
    #[flatwater(try_from = "String")]
    field: NoValue,
}

fn main() {}
