//! Registering functions and collations on an open database.
//!
//! Owns: what follows from it for those who know of texts and results. Runs on the thread of the caller, and waits for nothing.
//! Invariant: when it returns, each connection looks before its next use, and nothing that was learnt with the functions
//! before holds any more. Leaves out: the list (`connection::functions`), and the connections.

use std::sync::Arc;

use super::Engine;
use super::dispatch::Caller;
use crate::connection::functions::Functions;
use crate::connection::functions::registration::{Key, Registration};
use crate::dependencies::change::Change;
use crate::error::{Error, Result};

impl Caller {
    /// Registers it, in the place of what has its name.
    pub(crate) fn register(&self, registration: impl FnOnce() -> Result<Registration>) -> Result<()> {
        self.may_begin()?;
        if let Some(own) = self.own_functions() {
            own.add(registration()?);
            return Ok(());
        }
        let engine = self.handle.own_engine("a function of the program")?;
        if engine.context.functions.add(registration()?) {
            engine.see_functions();
        }
        Ok(())
    }

    /// Removes it.
    pub(crate) fn unregister(&self, key: impl FnOnce() -> Result<Key>) -> Result<()> {
        self.may_begin()?;
        let engine = self.handle.own_engine("a function of the program")?;
        let key = key()?;
        let own = self.own_functions();
        if !own.unwrap_or(&engine.context.functions).remove(&key) {
            return Err(match key {
                Key::Function(name, arguments) => {
                    Error::misuse(format!("no function {name} with {arguments} arguments was created"))
                        .with_hint("a function is removed with the number of arguments that it was created with")
                }
                Key::Collation(name) => Error::misuse(format!("no collation {name} was created")),
            });
        }
        if own.is_none() {
            engine.see_functions();
        }
        Ok(())
    }

    /// The functions of a connection of the caller's own.
    fn own_functions(&self) -> Option<&Arc<Functions>> {
        self.kept.as_ref()?.functions()
    }
}

impl Engine {
    /// Called when the functions have changed.
    fn see_functions(&self) {
        self.context.catalogue.next_epoch();
        let live = self.live.listener();
        live.publish(&Change::Everything);
        live.start();
    }
}
