//! A reply of a command becomes a value and then the reply of the script, which is one reply and whole, or an error.

use snugly_protocol::resp::{Args, ArgsBuffer, Protocol, ReplyBuffer, ReplyLimits, ReplyParser};
use snugly_scripting::{Engine, Host};

const MEMORY: usize = 16 << 20;

/// A server that answers everything with the same bytes.
struct Answers<'a>(&'a [u8]);

impl Host for Answers<'_> {
    fn call(&mut self, _request: Args<'_>, _protocol: Protocol) -> &[u8] {
        self.0
    }

    fn may_run(&mut self, _request: Args<'_>) -> Option<bool> {
        None
    }

    fn log(&mut self, _level: u8, _message: &[u8]) {}

    fn kind(&self) -> &'static str {
        "SCRIPT"
    }

    fn is_killed(&mut self) -> bool {
        false
    }
}

/// The first byte chooses the versions of RESP that the script and its client speak.
pub fn run(bytes: &[u8]) {
    let Some((choice, reply)) = bytes.split_first() else { return };
    let mut engine = Engine::new(MEMORY).expect("there is memory");
    let chosen = if choice & 1 == 0 { 2 } else { 3 };
    let code = format!("redis.setresp({chosen}) return redis.call('x')");
    let script = engine.compile(code.as_bytes()).expect("it is well-formed");
    let client = if choice & 2 == 0 { Protocol::Resp2 } else { Protocol::Resp3 };
    let (none, mut replies) = (ArgsBuffer::default(), ReplyBuffer::new(client));
    match engine.run(&script, none.args(), none.args(), &mut Answers(reply), &mut replies) {
        Err(failure) => assert!(!failure.text.is_empty() && replies.as_bytes().is_empty()),
        Ok(()) => {
            let written = replies.as_bytes();
            let parsed = ReplyParser::default()
                .parse(written, &ReplyLimits { max_depth: 1_000, ..ReplyLimits::default() });
            let len = parsed.expect("it is well-formed").expect("it is whole").1;
            assert_eq!(len, written.len());
        }
    }
}
