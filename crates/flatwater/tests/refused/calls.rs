use flatwater::{Database, Row};

struct Post;

async fn calls(db: &Database, row: &Row<'_>, name: String) -> flatwater::Result<()> {
    db.query_as::<Post>("SELECT 1", ()).await?;
    db.query_as::<i64>("SELECT 1", ()).await?;
    db.execute("DELETE FROM t WHERE id = ?", 1).await?;
    row.get::<i64>(name)?;
    Ok(())
}

fn main() {}
