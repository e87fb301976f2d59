//! The native module of Flatwater for Node: functions that take plain values and answer a number, a text or a buffer.
//!
//! Owns: the list of the functions. The package in `flatwater/` is the API; it makes promises and objects of what these answer. The
//! design is in `docs/design/node.md`. Unsafe code is in `capi` only.

mod answers;
mod blobs;
mod calls;
mod capi;
mod care;
mod codes;
mod events;
mod failure;
mod functions;
mod handles;
mod host;
mod lines;
mod lists;
mod many;
mod opening;
mod options;
mod params;
mod plain;
mod reading;
mod reading_as;
mod schemas;
mod scopes;
mod stats;
mod texts;
mod told;
mod waiting;

use capi::function::{Function, register};
use functions::serve;
use host::Host;

const FUNCTIONS: &[Function<Host>] = &[
    Function { name: "begin", run: reading::begin },
    Function { name: "drain", run: reading::drain },
    Function { name: "poll", run: reading::poll },
    Function { name: "giveUp", run: reading::give_up },
    Function { name: "hadTurn", run: reading::had_turn },
    Function { name: "keepAlive", run: reading::keep_alive },
    Function { name: "ended", run: reading::ended },
    Function { name: "failure", run: reading::failure },
    Function { name: "columns", run: reading::columns },
    Function { name: "declaredTypes", run: reading::declared_types },
    Function { name: "tables", run: reading::tables },
    Function { name: "bytes", run: reading::bytes },
    Function { name: "unknown", run: reading::unknown_name },
    Function { name: "hasRows", run: texts::has_rows },
    Function { name: "statements", run: texts::statements },
    Function { name: "described", run: texts::described },
    Function { name: "sqliteVersion", run: texts::sqlite_version },
    Function { name: "tell", run: scopes::tell },
    Function { name: "told", run: scopes::told },
    Function { name: "limit", run: scopes::limit },
    Function { name: "listen", run: stats::listen },
    Function { name: "event", run: stats::event },
    Function { name: "openBlob", run: blobs::open },
    Function { name: "readBlob", run: blobs::read },
    Function { name: "writeBlob", run: blobs::write },
    Function { name: "functionsOf", run: serve::functions_of },
    Function { name: "usedModule", run: serve::used_module },
    Function { name: "serveFunctions", run: serve::serve_functions },
    Function { name: "serve", run: serve::serve },
    Function { name: "threw", run: serve::threw },
    Function { name: "open", run: opening::open },
    Function { name: "close", run: opening::close },
    Function { name: "run", run: calls::run },
    Function { name: "queryJson", run: calls::query_json },
    Function { name: "end", run: scopes::end },
    Function { name: "inTransaction", run: scopes::in_transaction },
    Function { name: "savepoint", run: scopes::savepoint },
    Function { name: "connection", run: scopes::connection },
    Function { name: "closeConnection", run: scopes::close_connection },
    Function { name: "interrupt", run: scopes::interrupt },
    Function { name: "totalChanges", run: scopes::total_changes },
    Function { name: "release", run: opening::release },
    Function { name: "migrate", run: calls::migrate },
    Function { name: "queryPlan", run: care::query_plan },
    Function { name: "export", run: care::export },
    Function { name: "rekey", run: care::rekey },
    Function { name: "hasKey", run: care::has_key },
    Function { name: "pagesSql", run: care::pages_sql },
    Function { name: "checkSql", run: care::check_sql },
    Function { name: "problems", run: care::problems },
    Function { name: "types", run: reading::types },
    Function { name: "batches", run: calls::batches },
    Function { name: "live", run: calls::live },
    Function { name: "next", run: calls::next },
    Function { name: "rows", run: many::rows },
    Function { name: "addRows", run: many::add },
    Function { name: "addPlain", run: plain::add },
    Function { name: "runMany", run: many::run },
    Function { name: "stats", run: stats::stats },
    Function { name: "name", run: stats::name },
    Function { name: "allocated", run: stats::allocated },
    Function { name: "setMaxOpen", run: stats::set_max_open },
    Function { name: "closeAll", run: opening::close_all },
];

/// Node calls it when the module is loaded into an environment.
///
/// # Safety
/// The arguments are those of Node.
// SAFETY: Node looks for this name, and no other symbol of the process has it within this module.
#[unsafe(no_mangle)]
unsafe extern "C" fn napi_register_module_v1(
    env: napi_sys::napi_env,
    exports: napi_sys::napi_value,
) -> napi_sys::napi_value {
    // SAFETY: these are Node's arguments.
    unsafe { register(env, exports, FUNCTIONS, Host::new) }
}
