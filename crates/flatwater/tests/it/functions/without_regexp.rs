//! The operator REGEXP without the feature that has it.

use flatwater::ErrorKind;
use flatwater::rusqlite::functions::FunctionFlags;

use crate::place::{Place, in_both_places};

in_both_places!(the_operator_needs_the_feature_or_a_function_of_the_program);

async fn the_operator_needs_the_feature_or_a_function_of_the_program(place: &Place) {
    let db = place.open().await;
    let error = db.query("SELECT 'a' REGEXP 'b'", ()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Sql);
    assert!(error.hint().unwrap().contains("feature `regexp`"), "{error}");
    db.functions().create_scalar_function("regexp", 2, FunctionFlags::SQLITE_UTF8, |_| Ok(7)).unwrap();
    assert_eq!(db.query_value("SELECT 'a' REGEXP 'b'", ()).await, Ok(7));
    db.functions().remove_function("regexp", 2).unwrap();
    assert_eq!(db.query("SELECT 'a' REGEXP 'b'", ()).await.unwrap_err().kind(), ErrorKind::Sql);
}
