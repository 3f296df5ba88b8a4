//! JSON is a value or an error; what it is a value of is written and read again.

use super::state::{call, state, string};

pub fn run(json: &[u8]) {
    let lua = state();
    let Some(values) = call(&lua, "cjson", "decode", [string(&lua, json)].into_iter().collect()) else {
        return;
    };
    // Numbers that JSON has no text for are read but not written.
    let Some(written) = call(&lua, "cjson", "encode", values) else { return };
    assert!(call(&lua, "cjson", "decode", written).is_some());
}
