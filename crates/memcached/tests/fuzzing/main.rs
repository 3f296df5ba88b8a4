//! The bodies of the fuzz targets, replayed over their seeds; `make fuzz` looks for new inputs.

mod binary;
mod lines;
mod meta;
mod requests;
mod text;

#[test]
fn binary_holds_for_its_seeds_and_their_mutations() {
    snugly_fuzzing::replay(concat!(env!("CARGO_MANIFEST_DIR"), "/fuzz/seeds/binary"), binary::run);
}

#[test]
fn meta_holds_for_its_seeds_and_their_mutations() {
    snugly_fuzzing::replay(concat!(env!("CARGO_MANIFEST_DIR"), "/fuzz/seeds/meta"), meta::run);
}

#[test]
fn text_holds_for_its_seeds_and_their_mutations() {
    snugly_fuzzing::replay(concat!(env!("CARGO_MANIFEST_DIR"), "/fuzz/seeds/text"), text::run);
}
