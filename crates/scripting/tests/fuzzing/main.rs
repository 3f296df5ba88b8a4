//! The bodies of the fuzz targets, replayed over their seeds; `make fuzz` looks for new inputs.

mod cjson;
mod cmsgpack;
mod replies;
mod state;
mod structs;

#[test]
fn cjson_holds_for_its_seeds_and_their_mutations() {
    snugly_fuzzing::replay(concat!(env!("CARGO_MANIFEST_DIR"), "/fuzz/seeds/cjson"), cjson::run);
}

#[test]
fn cmsgpack_holds_for_its_seeds_and_their_mutations() {
    snugly_fuzzing::replay(concat!(env!("CARGO_MANIFEST_DIR"), "/fuzz/seeds/cmsgpack"), cmsgpack::run);
}

#[test]
fn structs_holds_for_its_seeds_and_their_mutations() {
    snugly_fuzzing::replay(concat!(env!("CARGO_MANIFEST_DIR"), "/fuzz/seeds/structs"), structs::run);
}

#[test]
fn replies_holds_for_its_seeds_and_their_mutations() {
    snugly_fuzzing::replay(concat!(env!("CARGO_MANIFEST_DIR"), "/fuzz/seeds/replies"), replies::run);
}
