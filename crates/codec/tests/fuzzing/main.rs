//! The bodies of the fuzz targets, replayed over their seeds; `make fuzz` looks for new inputs.

mod checks;
mod dictionary;
mod envelope;
mod lz4;
mod lz4_dictionary;
mod lzf;
mod record;
mod training;
mod zstd;

#[test]
fn dictionary_holds_for_its_seeds_and_their_mutations() {
    snugly_fuzzing::replay(concat!(env!("CARGO_MANIFEST_DIR"), "/fuzz/seeds/dictionary"), dictionary::run);
}

#[test]
fn envelope_holds_for_its_seeds_and_their_mutations() {
    snugly_fuzzing::replay(concat!(env!("CARGO_MANIFEST_DIR"), "/fuzz/seeds/envelope"), envelope::run);
}

#[test]
fn lz4_holds_for_its_seeds_and_their_mutations() {
    snugly_fuzzing::replay(concat!(env!("CARGO_MANIFEST_DIR"), "/fuzz/seeds/lz4"), lz4::run);
}

#[test]
fn lz4_dictionary_holds_for_its_seeds_and_their_mutations() {
    snugly_fuzzing::replay(
        concat!(env!("CARGO_MANIFEST_DIR"), "/fuzz/seeds/lz4_dictionary"),
        lz4_dictionary::run,
    );
}

#[test]
fn lzf_holds_for_its_seeds_and_their_mutations() {
    snugly_fuzzing::replay(concat!(env!("CARGO_MANIFEST_DIR"), "/fuzz/seeds/lzf"), lzf::run);
}

#[test]
fn record_holds_for_its_seeds_and_their_mutations() {
    snugly_fuzzing::replay(concat!(env!("CARGO_MANIFEST_DIR"), "/fuzz/seeds/record"), record::run);
}

#[test]
fn training_holds_for_its_seeds_and_their_mutations() {
    snugly_fuzzing::replay(concat!(env!("CARGO_MANIFEST_DIR"), "/fuzz/seeds/training"), training::run);
}

#[test]
fn zstd_holds_for_its_seeds_and_their_mutations() {
    snugly_fuzzing::replay(concat!(env!("CARGO_MANIFEST_DIR"), "/fuzz/seeds/zstd"), zstd::run);
}
