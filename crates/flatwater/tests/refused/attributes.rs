use flatwater::FromRow;

#[derive(FromRow)]
struct Unknown {
    #[flatwater(renamed = "a")]
    a: i64,
}

#[derive(FromRow)]
struct Twice {
    #[flatwater(rename = "a", rename = "b")]
    a: i64,
}

#[derive(FromRow)]
struct Excluded {
    #[flatwater(flatten, rename = "a")]
    a: (i64,),
}

#[derive(FromRow)]
#[flatwater(rename_all = "snakeCase")]
struct Case {
    a: i64,
}

#[derive(FromRow)]
struct NoText {
    #[flatwater(rename = 1)]
    a: i64,
}

#[derive(FromRow)]
struct ByPosition(#[flatwater(rename = "a")] i64);

fn main() {}
