//! Messages of the nodes of a cluster about dictionaries, as bytes. Numbers are little-endian.
//!
//! The server does not tell messages of modules apart whose names are not nine letters long, so all have one kind of the server's,
//! which others hardly use, and begin with a word.
//!
//! ```text
//! "snugly" 01, one byte for the kind, and behind it:
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
    /// Patterns and IDs of the dictionaries that the sender compresses new strings with.
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

/// The server's kind of all messages.
pub const KIND: u8 = 0xd5;
/// Begins each message: a word, and the version.
const MAGIC: &[u8; 7] = b"snugly\x01";

impl Message {
    /// Its bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let (kind, bytes) = match self {
            Message::Offer(rows) => (0, rows.iter().flat_map(|(pattern, id)| row(pattern, *id)).collect()),
            Message::Want(id) => (1, id.to_le_bytes().to_vec()),
            Message::Dictionary(bytes) => (2, bytes.clone()),
            Message::Have(id) => (3, id.to_le_bytes().to_vec()),
            Message::Lack(id) => (4, id.to_le_bytes().to_vec()),
            Message::Choose(id, pattern) => (5, [&id.to_le_bytes()[..], pattern].concat()),
            Message::Forget(id) => (6, id.to_le_bytes().to_vec()),
            Message::Propose(bytes) => (7, bytes.clone()),
        };
        [MAGIC, &[kind][..], &bytes].concat()
    }

    /// The message in these bytes; `None` if they are somebody else's.
    pub fn parse(bytes: &[u8]) -> Option<Message> {
        let (kind, bytes) = bytes.strip_prefix(MAGIC)?.split_first()?;
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

    /// Whether replicas and files may have to be told what follows from it.
    pub fn tells(&self) -> bool {
        !matches!(self, Message::Want(_) | Message::Have(_) | Message::Lack(_))
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
            prop_assert_eq!(Message::parse(&message.to_bytes()), Some(message));
        }

        #[test]
        fn any_bytes_are_a_message_or_none(kind in 0u8..9, bytes: Vec<u8>) {
            let bytes = [MAGIC, &[kind][..], &bytes].concat();
            if let Some(message) = Message::parse(&bytes) {
                prop_assert_eq!(message.to_bytes(), bytes);
            }
        }

        #[test]
        fn messages_of_other_modules_are_none(bytes: Vec<u8>) {
            prop_assert_eq!(Message::parse(&bytes), None);
        }
    }
}
