//! What nodes of a cluster tell each other of dictionaries, as bytes. Numbers are little-endian.
//!
//! ```text
//! 0 offer       for each dictionary in use its ID u32, length of its pattern u16, pattern
//! 1 want        ID u32
//! 2 dictionary  all of its bytes
//! 3 have        ID u32
//! 4 lack        ID u32
//! 5 choose      ID u32, pattern
//! 6 forget      ID u32
//! 7 propose     all of a dictionary's bytes
//! ```

/// A message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// What the sender compresses new strings with: patterns and IDs.
    Offer(Vec<(Vec<u8>, u32)>),
    /// Asks for a dictionary.
    Want(u32),
    /// A dictionary, which is to be kept.
    Dictionary(Vec<u8>),
    /// The sender keeps this one, which was proposed.
    Have(u32),
    /// The sender does not have this one.
    Lack(u32),
    /// All primaries have this one: new strings of a pattern are compressed with it.
    Choose(u32, Vec<u8>),
    /// No new strings are compressed with this one.
    Forget(u32),
    /// A dictionary, which is to be kept, and used when all primaries have it.
    Propose(Vec<u8>),
}

/// Number of kinds.
pub const KINDS: u8 = 8;

impl Message {
    /// Its kind.
    pub fn kind(&self) -> u8 {
        match self {
            Message::Offer(_) => 0,
            Message::Want(_) => 1,
            Message::Dictionary(_) => 2,
            Message::Have(_) => 3,
            Message::Lack(_) => 4,
            Message::Choose(..) => 5,
            Message::Forget(_) => 6,
            Message::Propose(_) => 7,
        }
    }

    /// Its bytes, without the kind.
    pub fn bytes(&self) -> Vec<u8> {
        match self {
            Message::Offer(rows) => rows.iter().flat_map(|(pattern, id)| row(pattern, *id)).collect(),
            Message::Want(id) | Message::Have(id) | Message::Lack(id) | Message::Forget(id) => {
                id.to_le_bytes().to_vec()
            }
            Message::Dictionary(bytes) | Message::Propose(bytes) => bytes.clone(),
            Message::Choose(id, pattern) => [&id.to_le_bytes()[..], pattern].concat(),
        }
    }

    /// The message of a kind in these bytes; `None` if there is none.
    pub fn parse(kind: u8, bytes: &[u8]) -> Option<Message> {
        let only_id = || Some(u32::from_le_bytes(bytes.try_into().ok()?));
        Some(match kind {
            0 => Message::Offer(rows(bytes)?),
            1 => Message::Want(only_id()?),
            2 => Message::Dictionary(bytes.to_vec()),
            3 => Message::Have(only_id()?),
            4 => Message::Lack(only_id()?),
            5 => {
                let (id, pattern) = bytes.split_first_chunk()?;
                Message::Choose(u32::from_le_bytes(*id), pattern.to_vec())
            }
            6 => Message::Forget(only_id()?),
            7 => Message::Propose(bytes.to_vec()),
            _ => return None,
        })
    }
}

/// Nothing for a pattern that is too long to be told.
fn row(pattern: &[u8], id: u32) -> Vec<u8> {
    match u16::try_from(pattern.len()) {
        Ok(len) => [&id.to_le_bytes()[..], &len.to_le_bytes(), pattern].concat(),
        Err(_) => Vec::new(),
    }
}

fn rows(mut bytes: &[u8]) -> Option<Vec<(Vec<u8>, u32)>> {
    let mut rows = Vec::new();
    while !bytes.is_empty() {
        let (id, rest) = bytes.split_first_chunk()?;
        let (len, rest) = rest.split_first_chunk()?;
        let (pattern, rest) = rest.split_at_checked(u16::from_le_bytes(*len).into())?;
        rows.push((pattern.to_vec(), u32::from_le_bytes(*id)));
        bytes = rest;
    }
    Some(rows)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn any_message() -> impl Strategy<Value = Message> {
        let pattern = || proptest::collection::vec(any::<u8>(), 0..40);
        prop_oneof![
            proptest::collection::vec((pattern(), any::<u32>()), 0..9).prop_map(Message::Offer),
            any::<u32>().prop_map(Message::Want),
            pattern().prop_map(Message::Dictionary),
            any::<u32>().prop_map(Message::Have),
            any::<u32>().prop_map(Message::Lack),
            (any::<u32>(), pattern()).prop_map(|(id, pattern)| Message::Choose(id, pattern)),
            any::<u32>().prop_map(Message::Forget),
            pattern().prop_map(Message::Propose),
        ]
    }

    proptest! {
        #[test]
        fn a_message_comes_back_from_its_bytes(message in any_message()) {
            prop_assert!(message.kind() < KINDS);
            prop_assert_eq!(Message::parse(message.kind(), &message.bytes()), Some(message));
        }

        #[test]
        fn any_bytes_are_a_message_or_none(kind: u8, bytes: Vec<u8>) {
            if let Some(message) = Message::parse(kind, &bytes) {
                prop_assert_eq!(message.bytes(), bytes);
            }
        }
    }
}
