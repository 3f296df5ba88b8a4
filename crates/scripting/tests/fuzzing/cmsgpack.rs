//! MessagePack is values or an error; the values are packed and unpacked again.

use super::state::{call, state, string};

pub fn run(packed: &[u8]) {
    let lua = state();
    let Some(values) = call(&lua, "cmsgpack", "unpack", [string(&lua, packed)].into_iter().collect()) else {
        return;
    };
    let count = values.len();
    if count > 0 {
        let packed = call(&lua, "cmsgpack", "pack", values).expect("what is unpacked can be packed");
        // Keys that are tables too deep are nil when they are packed, which is no key.
        assert!(call(&lua, "cmsgpack", "unpack", packed).is_none_or(|again| again.len() == count));
    }
}
