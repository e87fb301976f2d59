//! The functions that `flatwater types` makes of `queries/users.sql`: they compile, and run. A test of the command makes them anew and
//! compares.

#[path = "generated/queries.rs"]
mod queries;

use flatwater::{Options, Result};

#[test]
fn functions_return_what_their_annotations_say() -> Result<()> {
    let script = include_str!("../migrations/001_shop.sql");
    let db = Options::new(":memory:").migrations([("001_shop", script)]).open().wait()?;
    let run = async {
        let id = queries::add_user(&db, "Ada", None, Some("1815-12-10")).await?.unwrap_or_default();
        assert_eq!(queries::get_user(&db, id).await?.name, "Ada");
        assert_eq!(queries::rename_user(&db, "Eve", id).await?, 1);
        assert_eq!(queries::find_users(&db, "Eve", "").await?, [queries::FindUsersRow { id, n: 1 }]);
        assert_eq!(queries::last_order(&db, id).await?, None);
        queries::clear(&db).await
    };
    let (mut run, waker) = (std::pin::pin!(run), std::task::Waker::noop());
    loop {
        // Another thread may have the answer.
        match run.as_mut().poll(&mut std::task::Context::from_waker(waker)) {
            std::task::Poll::Ready(result) => return result,
            std::task::Poll::Pending => std::thread::yield_now(),
        }
    }
}
