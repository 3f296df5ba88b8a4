//! The bodies of the fuzz targets, replayed over their seeds; `make fuzz` looks for new inputs.

mod catalogue;

#[test]
fn catalogue_holds_for_its_seeds_and_their_mutations() {
    snugly_fuzzing::replay(concat!(env!("CARGO_MANIFEST_DIR"), "/fuzz/seeds/catalogue"), catalogue::run);
}
