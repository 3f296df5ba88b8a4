//! The keyed hash whose order is that of shards, of tables in them, and of rows on disk.

use std::hash::Hasher;

use siphasher::sip::SipHasher13;

/// A key of the hash function, secret so that nobody can choose keys that fall into one shard.
pub(crate) type HashKey = [u64; 2];

/// SipHash-1-3 (Aumasson and Bernstein, 2012) of a key.
pub(crate) fn hash(hash_key: HashKey, key: &[u8]) -> u64 {
    let mut hasher = SipHasher13::new_with_keys(hash_key[0], hash_key[1]);
    hasher.write(key);
    hasher.finish()
}
