//! What the bodies share: any bytes, in any pieces, are the same requests as at once, with values and keys
//! within their limits; and whatever comes of them is written in a form that a client can read to its end.

use snugly_memcached::{
    Item, KeyBuffer, Limits, MAX_KEY, Operation, Outcome, Parsed, Request, RequestParser,
};

/// Limits that small inputs reach.
const LIMITS: Limits = Limits { max_value: 64, max_line: 4096 };
/// Bytes that may be asked for however little has arrived.
const WANTED_FLOOR: usize = 16 * 1024;

/// Checks `stream` in pieces of `piece` bytes beside the whole of it. `check_reply` reads a reply to one
/// request.
pub fn check(stream: &[u8], piece: usize, check_reply: fn(&[u8])) {
    let whole = requests(stream, stream.len().max(1), check_reply);
    assert_eq!(requests(stream, piece.max(1), check_reply), whole);
}

/// The requests as text.
fn requests(stream: &[u8], piece: usize, check_reply: fn(&[u8])) -> Vec<String> {
    let (mut parser, mut buffer, mut requests) = (RequestParser::default(), Vec::new(), Vec::new());
    for piece in stream.chunks(piece) {
        buffer.extend_from_slice(piece);
        loop {
            let before = parser;
            let taken = match parser.parse(&buffer, &LIMITS) {
                Parsed::Request(request, taken) => {
                    let mut again = before;
                    assert_eq!(again.parse(&buffer, &LIMITS), Parsed::Request(request, taken));
                    check_operation(&request.operation);
                    for reply in replies(&request) {
                        check_reply(&reply);
                    }
                    requests.push(format!("{request:?}"));
                    taken
                }
                Parsed::Skipped(taken) => taken,
                Parsed::Incomplete { wanted } => {
                    assert!((1..=buffer.len().max(WANTED_FLOOR)).contains(&wanted));
                    break;
                }
            };
            assert!((1..=buffer.len()).contains(&taken));
            buffer.drain(..taken);
        }
    }
    requests
}

fn check_operation(operation: &Operation<'_>) {
    let key = match operation {
        Operation::Get(get) => get.key,
        Operation::Store(store) => {
            assert!(store.value.len() <= LIMITS.max_value);
            store.key
        }
        Operation::Delete(delete) => delete.key,
        Operation::Arithmetic(arithmetic) => arithmetic.key,
        Operation::Touch { key, .. } | Operation::MetaDebug { key } => *key,
        Operation::Refused(refused) => match refused.superseded {
            Some(key) => key,
            None => return,
        },
        _ => return,
    };
    let mut buffer: KeyBuffer = [0; MAX_KEY];
    assert!((1..=MAX_KEY).contains(&key.bytes(&mut buffer).len()));
}

/// Replies that an operation may have.
fn replies(request: &Request<'_>) -> Vec<Vec<u8>> {
    let form = request.form;
    let item =
        Item { flags: 1, cas: u64::MAX, ttl: Some(30), is_stale: true, is_won: true, ..Item::default() };
    let write = |write: &dyn Fn(&mut Vec<u8>)| {
        let mut out = Vec::new();
        write(&mut out);
        out
    };
    let mut replies = match request.operation {
        Operation::Get(get) => vec![
            write(&|out| {
                let value: &[u8] = if get.wants_value { b"value" } else { b"" };
                form.begin_hit(&Item { len: value.len(), ..item }, out);
                out.extend_from_slice(value);
                form.end_hit(out);
            }),
            write(&|out| form.miss(out)),
        ],
        Operation::Store(_) => [Outcome::Stored { cas: 1, len: 5 }, Outcome::NotStored, Outcome::Exists]
            .iter()
            .map(|outcome| write(&|out| form.outcome(*outcome, out)))
            .collect(),
        Operation::Delete(_) => vec![
            write(&|out| form.outcome(Outcome::Deleted, out)),
            write(&|out| form.outcome(Outcome::NotFound, out)),
        ],
        Operation::Arithmetic(_) => vec![
            write(&|out| form.number(u64::MAX, &item, out)),
            write(&|out| form.outcome(Outcome::NotNumeric, out)),
        ],
        Operation::Touch { .. } => vec![write(&|out| form.touched(&item, out))],
        Operation::FlushAll { .. } | Operation::Verbosity { .. } | Operation::CacheMemoryLimit { .. } => {
            vec![write(&|out| form.ok(out))]
        }
        Operation::Stats { .. } => vec![write(&|out| form.end_stats(out)), write(&|out| form.reset(out))],
        Operation::Version => vec![write(&|out| form.version("1", out))],
        Operation::NoOp => vec![write(&|out| form.no_op(out))],
        Operation::MetaDebug { .. } => vec![write(&|out| form.debug([("exp", "-1")], out))],
        Operation::Quit => vec![write(&|out| form.quit(out))],
        Operation::ListMechanisms => vec![write(&|out| form.mechanisms("PLAIN", out))],
        Operation::Authenticate { .. } => {
            vec![write(&|out| form.authenticated(out)), write(&|out| form.authentication_failed(out))]
        }
        Operation::Refused(refused) => vec![write(&|out| form.refused(refused.refusal, out))],
    };
    replies.push(write(&|out| form.server_error("out of\r\nmemory", out)));
    replies.push(write(&|out| form.unauthenticated(out)));
    replies
}
