//! What a replica and its primary say to each other before keys are sent: a request at a time, and its reply, one line.
//!
//! It knows Valkey's requests and how servers refuse them. It knows no sockets and no time.

use snugly_protocol::escape::escape;
use snugly_protocol::resp::encode_command;

/// Identity of the stream where none is known, and any will do.
const NO_STREAM: &str = "?";
/// Length of a stream's identity.
const STREAM_LEN: usize = 40;

/// The part of a stream that a replica has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Had {
    /// Identity of the stream, 40 characters.
    pub(super) stream: String,
    /// Number of its bytes whose requests have run.
    pub(super) offset: u64,
}

/// What is told of this server, and asked for.
#[derive(Clone, Debug, Default)]
pub(super) struct Wishes {
    /// Name, which may be empty, and password.
    pub(super) login: Option<(String, String)>,
    /// Port at which clients find this server; 0 if there is none.
    pub(super) port: u16,
    /// The part of a stream to go on from.
    pub(super) had: Option<Had>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Ping,
    Login,
    Port,
    Abilities,
    Stream,
}

/// The steps, in their order.
const STEPS: [Step; 5] = [Step::Ping, Step::Login, Step::Port, Step::Abilities, Step::Stream];

/// A handshake under way.
#[derive(Debug)]
pub(super) struct Handshake {
    wishes: Wishes,
    /// Steps that are yet to come; the first is the one whose reply is waited for.
    left: Vec<Step>,
}

/// The result of a reply.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// Another reply is to come, to this request.
    Send(Vec<u8>),
    /// Another line is to come: this one was to keep the connection alive.
    Listen,
    /// All keys come, and then the stream from there on.
    Full(Had),
    /// The stream goes on where it was asked for; under this identity from now on if it has another.
    Resumed(Option<String>),
}

/// Reason why a primary does not let itself be followed.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// It may do so later, for this reason.
    Later(String),
    /// It takes a change of settings, here or there.
    Refused(String),
}

impl Handshake {
    /// Begins a handshake; returns the first request.
    pub(super) fn new(wishes: Wishes) -> (Handshake, Vec<u8>) {
        let is_needed = |step: &Step| *step != Step::Login || wishes.login.is_some();
        let left: Vec<Step> = STEPS.into_iter().filter(is_needed).collect();
        let handshake = Handshake { wishes, left };
        let first = handshake.request();
        (handshake, first)
    }

    /// Takes the reply to the last request, a line without its end.
    pub(super) fn reply(&mut self, line: &[u8]) -> Result<Next, Refusal> {
        let Some(&step) = self.left.first().filter(|_| !line.is_empty()) else { return Ok(Next::Listen) };
        let text = String::from_utf8_lossy(line);
        match (step, text.strip_prefix('-')) {
            (Step::Stream, None) => return self.stream(&text),
            (_, None) if text.starts_with('+') => {}
            (_, None) => {
                return Err(refused(format!(
                    "it does not speak RESP as Valkey and Redis do, and says {}",
                    escape(line)
                )));
            }
            (_, Some(error)) => self.error(step, error)?,
        }
        self.left.remove(0);
        Ok(Next::Send(self.request()))
    }

    /// Takes an error; some steps can be done without.
    fn error(&self, step: Step, error: &str) -> Result<(), Refusal> {
        let error = escape(error.as_bytes());
        let is = |codes: &[&str]| codes.iter().any(|code| error.starts_with(code));
        match step {
            _ if is(&["LOADING", "NOMASTERLINK", "BUSY", "MASTERDOWN", "TRYAGAIN"]) => {
                Err(Refusal::Later(error))
            }
            // The password comes next, or is found to be missing.
            Step::Ping if is(&["NOAUTH", "NOPERM", "ERR operation not permitted"]) => Ok(()),
            Step::Login => Err(refused(format!(
                "it does not take the password: set primary-auth, and primary-user if it is not that of its user default ({error})"
            ))),
            _ if is(&["NOAUTH", "ERR operation not permitted"]) => Err(refused(format!(
                "it wants a password: set primary-auth, and primary-user if there is one ({error})"
            ))),
            _ if is(&["NOPERM"]) => Err(refused(format!(
                "the user may not follow it: let primary-user there have +psync +replconf +ping ({error})"
            ))),
            // Servers that do not know these follow all the same.
            Step::Port | Step::Abilities => Ok(()),
            Step::Ping => Err(refused(format!("it does not answer PING: {error}"))),
            Step::Stream => Err(refused(format!(
                "it does not know PSYNC as Valkey and Redis do, which can be followed; a snugly server cannot be yet ({error})"
            ))),
        }
    }

    /// Takes the reply to PSYNC.
    fn stream(&self, text: &str) -> Result<Next, Refusal> {
        let mut words = text.split_ascii_whitespace();
        let wrong = || refused(format!("it answers PSYNC with {}", escape(text.as_bytes())));
        match words.next() {
            Some("+FULLRESYNC") => {
                let stream = words.next().and_then(identity).ok_or_else(wrong)?;
                let offset = words.next().and_then(|word| word.parse().ok()).ok_or_else(wrong)?;
                Ok(Next::Full(Had { stream, offset }))
            }
            Some("+CONTINUE") if self.wishes.had.is_some() => match words.next() {
                None => Ok(Next::Resumed(None)),
                Some(word) => Ok(Next::Resumed(Some(identity(word).ok_or_else(wrong)?))),
            },
            _ => Err(wrong()),
        }
    }

    /// The request of the step that comes next.
    fn request(&self) -> Vec<u8> {
        let Wishes { login, had, .. } = &self.wishes;
        let (user, password) = login.as_ref().map_or(("", ""), |(user, password)| (user, password));
        let (port, offset);
        let words: Vec<&str> = match self.left.first() {
            Some(Step::Ping) | None => vec!["PING"],
            Some(Step::Login) if user.is_empty() => vec!["AUTH", password],
            Some(Step::Login) => vec!["AUTH", user, password],
            Some(Step::Port) => {
                port = self.wishes.port.to_string();
                vec!["REPLCONF", "listening-port", &port]
            }
            Some(Step::Abilities) => vec!["REPLCONF", "capa", "eof", "capa", "psync2"],
            Some(Step::Stream) => match had {
                None => vec!["PSYNC", NO_STREAM, "-1"],
                Some(had) => {
                    // The first byte that is missing, counted from one.
                    offset = had.offset.saturating_add(1).to_string();
                    vec!["PSYNC", &had.stream, &offset]
                }
            },
        };
        let mut request = Vec::new();
        encode_command(&words, &mut request);
        request
    }
}

fn refused(reason: String) -> Refusal {
    Refusal::Refused(reason)
}

/// The identity of a stream, if a word is one.
fn identity(word: &str) -> Option<String> {
    (word.len() == STREAM_LEN && word.bytes().all(|byte| byte.is_ascii_graphic())).then(|| word.to_owned())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const STREAM: &str = "0123456789abcdef0123456789abcdef01234567";
    const OTHER: &str = "fedcba9876543210fedcba9876543210fedcba98";

    fn had(stream: &str, offset: u64) -> Had {
        Had { stream: stream.to_owned(), offset }
    }

    fn words(request: &[u8]) -> String {
        let text = String::from_utf8_lossy(request).into_owned();
        let words: Vec<_> =
            text.split("\r\n").filter(|part| !part.is_empty() && !part.starts_with(['*', '$'])).collect();
        words.join(" ")
    }

    /// The requests of a handshake in which each is answered so, and how it ends.
    fn played(wishes: Wishes, replies: &[&str]) -> (Vec<String>, Result<Next, Refusal>) {
        let (mut handshake, first) = Handshake::new(wishes);
        let mut said = vec![words(&first)];
        let mut last = Ok(Next::Listen);
        for reply in replies {
            last = handshake.reply(reply.as_bytes());
            if let Ok(Next::Send(request)) = &last {
                said.push(words(request));
            }
        }
        (said, last)
    }

    #[test]
    fn everything_is_asked_for_where_nothing_is_there() {
        let wishes = Wishes { port: 7684, ..Wishes::default() };
        let full = format!("+FULLRESYNC {STREAM} 77");
        let (said, last) = played(wishes, &["+PONG", "+OK", "+OK", "", &full]);
        let expected =
            ["PING", "REPLCONF listening-port 7684", "REPLCONF capa eof capa psync2", "PSYNC ? -1"];
        assert_eq!(said, expected);
        assert_eq!(last, Ok(Next::Full(had(STREAM, 77))));
    }

    #[test]
    fn a_login_comes_before_anything_that_needs_it() {
        for (user, expected) in [("", "AUTH secret"), ("app", "AUTH app secret")] {
            let login = Some((user.to_owned(), "secret".to_owned()));
            let wishes = Wishes { login, ..Wishes::default() };
            let (said, _) = played(wishes, &["-NOAUTH Authentication required.", "+OK", "+OK"]);
            assert_eq!(said[..2], ["PING", expected]);
        }
    }

    #[test]
    fn a_stream_goes_on_behind_the_last_byte_that_was_had_under_its_old_identity_or_a_new_one() {
        let wishes = Wishes { had: Some(had(STREAM, 77)), ..Wishes::default() };
        let before = ["+PONG", "+OK", "+OK"];
        for (reply, identity) in
            [("+CONTINUE".to_owned(), None), (format!("+CONTINUE {OTHER}"), Some(OTHER.to_owned()))]
        {
            let replies: Vec<&str> = before.into_iter().chain([&*reply]).collect();
            let (said, last) = played(wishes.clone(), &replies);
            assert_eq!(said[3], format!("PSYNC {STREAM} 78"));
            assert_eq!(last, Ok(Next::Resumed(identity)));
        }
    }

    #[test]
    fn refusals_say_what_to_do() {
        let login = Some((String::new(), "secret".to_owned()));
        for (wishes, replies, told) in [
            (Wishes::default(), &["-NOAUTH x", "-NOAUTH Authentication required."][..], "set primary-auth"),
            (
                Wishes { login, ..Wishes::default() },
                &["+PONG", "-WRONGPASS invalid"],
                "does not take the password",
            ),
            (
                Wishes::default(),
                &["+PONG", "+OK", "+OK", "-ERR unknown command 'PSYNC'"],
                "a snugly server cannot be yet",
            ),
            (Wishes::default(), &["+PONG", "+OK", "+OK", "-NOPERM User x"], "+psync"),
            (Wishes::default(), &["HTTP/1.1 400 Bad Request"], "does not speak RESP"),
            (Wishes::default(), &["+PONG", "+OK", "+OK", "+FULLRESYNC short 1"], "answers PSYNC with"),
            (Wishes::default(), &["+PONG", "+OK", "+OK", "+CONTINUE"], "answers PSYNC with"),
        ] {
            let Err(Refusal::Refused(reason)) = played(wishes, replies).1 else { panic!("{told}") };
            assert!(reason.contains(told), "{reason}");
        }
    }

    #[test]
    fn a_primary_that_cannot_yet_is_waited_for() {
        for error in
            ["-LOADING Valkey is loading", "-NOMASTERLINK Can't SYNC", "-BUSY script", "-MASTERDOWN x"]
        {
            for before in [&[][..], &["+PONG", "+OK", "+OK"]] {
                let replies: Vec<&str> = before.iter().copied().chain([error]).collect();
                assert!(matches!(played(Wishes::default(), &replies).1, Err(Refusal::Later(_))), "{error}");
            }
        }
    }

    proptest! {
        #[test]
        fn any_replies_are_taken_or_refused(replies in prop::collection::vec("[+-]?(FULLRESYNC|CONTINUE|OK|.{0,50})( .{0,45}){0,3}", 0..8)) {
            let replies: Vec<&str> = replies.iter().map(String::as_str).collect();
            let _ = played(Wishes { had: Some(had(STREAM, u64::MAX)), ..Wishes::default() }, &replies);
        }
    }
}
