use flatwater::{Database, Row};

struct Post;

struct Decimal(i128, u32);

async fn calls(db: &Database, row: &Row<'_>, name: String) -> flatwater::Result<()> {
    db.query_as::<Post>("SELECT 1", ()).await?;
    db.query_as::<i64>("SELECT 1", ()).await?;
    db.execute("DELETE FROM t WHERE id = ?", 1).await?;
    row.get::<i64>(name)?;
    db.execute("DELETE FROM t WHERE price = ?", (Decimal(5, 2),)).await?;
    db.query_optional_value::<Decimal>("SELECT 1", ()).await?;
    Ok(())
}

fn main() {}
