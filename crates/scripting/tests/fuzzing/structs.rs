//! A format, up to a line break, and data are values or an error; the values are packed again.

use super::state::{call, state, string};

pub fn run(bytes: &[u8]) {
    let lua = state();
    let split = bytes.iter().position(|byte| *byte == b'\n').unwrap_or(bytes.len());
    let (format, data) =
        (string(&lua, &bytes[..split]), string(&lua, bytes.get(split + 1..).unwrap_or_default()));
    call(&lua, "struct", "size", [format.clone()].into_iter().collect());
    let unpacked = call(&lua, "struct", "unpack", [format.clone(), data].into_iter().collect());
    if let Some(mut values) = unpacked {
        values.push_front(format);
        call(&lua, "struct", "pack", values);
    }
}
