//! The bodies of the fuzz targets, replayed over their seeds; `make fuzz` looks for new inputs.

mod dumps;
mod rdb_files;
mod replies;
mod requests;

#[test]
fn dumps_holds_for_its_seeds_and_their_mutations() {
    snugly_fuzzing::replay(concat!(env!("CARGO_MANIFEST_DIR"), "/fuzz/seeds/dumps"), dumps::run);
}

#[test]
fn rdb_files_holds_for_its_seeds_and_their_mutations() {
    snugly_fuzzing::replay(concat!(env!("CARGO_MANIFEST_DIR"), "/fuzz/seeds/rdb_files"), rdb_files::run);
}

#[test]
fn replies_holds_for_its_seeds_and_their_mutations() {
    snugly_fuzzing::replay(concat!(env!("CARGO_MANIFEST_DIR"), "/fuzz/seeds/replies"), replies::run);
}

#[test]
fn requests_holds_for_its_seeds_and_their_mutations() {
    snugly_fuzzing::replay(concat!(env!("CARGO_MANIFEST_DIR"), "/fuzz/seeds/requests"), requests::run);
}
