//! Scripts that are compiled.

use mlua::Function;

/// A compiled script or a function of a library, for the engine that has compiled it.
#[derive(Clone)]
pub struct Script {
    pub(crate) function: Function,
    pub(crate) is_of_library: bool,
}
