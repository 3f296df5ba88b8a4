//! The keyed hash that orders shards, the tables in them, and rows on disk.

use std::hash::Hasher;

use siphasher::sip::SipHasher13;

/// A key of the hash function, secret so that nobody can choose keys that fall into one shard.
pub(crate) type HashKey = [u64; 2];

/// SipHash-1-3 (Aumasson and Bernstein, 2012) of a key.
pub(crate) fn hash(hash_key: HashKey, key: &[u8]) -> u64 {
    #[cfg(test)]
    counted::HASHES.set(counted::HASHES.get() + 1);
    let mut hasher = SipHasher13::new_with_keys(hash_key[0], hash_key[1]);
    hasher.write(key);
    hasher.finish()
}

/// Counter of the keys that the calling thread has hashed, for tests: each operation hashes each of its keys
/// once.
#[cfg(test)]
pub(crate) mod counted {
    use std::cell::Cell;

    thread_local! {
        pub(crate) static HASHES: Cell<usize> = const { Cell::new(0) };
    }
}
