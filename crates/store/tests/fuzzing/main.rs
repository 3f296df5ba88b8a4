//! The bodies of the fuzz targets, replayed over their seeds; `make fuzz` looks for new inputs.

mod list_operations;
mod slab;
mod store_operations;

#[test]
fn list_operations_holds_for_its_seeds_and_their_mutations() {
    snugly_fuzzing::replay(
        concat!(env!("CARGO_MANIFEST_DIR"), "/fuzz/seeds/list_operations"),
        list_operations::run,
    );
}

#[test]
fn slab_holds_for_its_seeds_and_their_mutations() {
    snugly_fuzzing::replay(concat!(env!("CARGO_MANIFEST_DIR"), "/fuzz/seeds/slab"), slab::run);
}

#[test]
fn store_operations_holds_for_its_seeds_and_their_mutations() {
    snugly_fuzzing::replay(
        concat!(env!("CARGO_MANIFEST_DIR"), "/fuzz/seeds/store_operations"),
        store_operations::run,
    );
}
