//! The names of the keys under which dictionaries live.

/// Keys of one prefix. Those that are used together are in one slot of a cluster if the prefix has a hash
/// tag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keys {
    prefix: String,
}

impl Keys {
    /// Default prefix.
    pub const DEFAULT_PREFIX: &str = "{snugly}";

    /// Creates the keys that begin with `prefix`, as in `dictionary_prefix` of a client.
    pub fn new(prefix: impl Into<String>) -> Keys {
        Keys { prefix: prefix.into() }
    }

    /// Returns the key of the dictionary of this ID: its bytes, without expiry, written with SET NX and never
    /// overwritten.
    pub fn dictionary(&self, id: u32) -> Vec<u8> {
        format!("{}:dict:{id}", self.prefix).into()
    }

    /// Returns the key of the catalogue: a JSON document, written under WATCH, MULTI and EXEC.
    pub fn catalogue(&self) -> Vec<u8> {
        format!("{}:dicts", self.prefix).into()
    }

    /// Returns the key of the lock that a client holds while it publishes: a value of its own, with an
    /// expiry, written with SET NX.
    pub fn training_lock(&self) -> Vec<u8> {
        format!("{}:dicts:lock", self.prefix).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_keys_begin_with_the_prefix() {
        let keys = Keys::new(Keys::DEFAULT_PREFIX);
        assert_eq!(keys.dictionary(32_768), b"{snugly}:dict:32768");
        assert_eq!(keys.catalogue(), b"{snugly}:dicts");
        assert_eq!(keys.training_lock(), b"{snugly}:dicts:lock");
        assert_eq!(Keys::new("{tenant-7}").catalogue(), b"{tenant-7}:dicts");
    }
}
