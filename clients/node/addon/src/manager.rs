//! The manager of a client's dictionaries, step by step, for JavaScript.
//!
//! The rules are those of the crate `snugly-dictionaries`. Who takes the steps is for the TypeScript around it, which
//! knows connections, timers and files.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use napi::ValueType;
use napi::bindgen_prelude::{Buffer, FromNapiValue, JsValue, Unknown};
use napi_derive::napi;
use snugly_dictionaries::{self as rules, Answer, Next, Now, Reply, Request};

use crate::dictionaries::{Dictionaries, Dictionary, seconds};
use crate::words::bytes;

/// Configuration of a manager.
#[napi(object, object_to_js = false)]
pub struct ManagerSettings {
    /// Prefix of the keys of dictionaries.
    pub prefix: String,
    /// Seconds between reads of the catalogue.
    pub refresh: f64,
    /// Whether unknown dictionaries are waited for.
    pub waits: bool,
    /// Whether copies are kept in a folder.
    pub has_copies: bool,
    /// Seconds that the client waits for a reply, if it does not wait for ever.
    pub read_timeout: Option<f64>,
}

/// Manager of the dictionaries of one client. Times are `monotonic` ones, and `wall` is since 1970; all in seconds.
#[napi]
pub struct Manager(Arc<rules::Manager>);

#[napi]
impl Manager {
    /// Creates a manager of what is at hand.
    #[napi(constructor)]
    pub fn new(settings: ManagerSettings, dictionaries: &Dictionaries) -> Manager {
        let settings = rules::Settings {
            prefix: settings.prefix,
            refresh: seconds(settings.refresh),
            waits: settings.waits,
            has_copies: settings.has_copies,
            read_timeout: settings.read_timeout.map(seconds),
        };
        Manager(Arc::new(rules::Manager::new(settings, dictionaries.cache().clone())))
    }

    /// Seconds between rounds.
    #[napi(getter)]
    pub fn interval(&self) -> f64 {
        self.0.interval().as_secs_f64()
    }

    /// Looks for dictionaries for a while. The outcome is those that there are.
    #[napi]
    pub fn fetch(&self, ids: Vec<u32>) -> Steps {
        Steps::new(Kind::Fetch(self.0.fetch(ids)))
    }

    /// Does what is to be done now. The outcome is how long there is nothing to do, in seconds.
    #[napi]
    pub fn refresh(&self) -> Steps {
        Steps::new(Kind::Refresh(self.0.refresh()))
    }

    /// Makes the server register dictionaries as in use, and puts back missing ones.
    #[napi]
    pub fn keep(&self) -> Steps {
        Steps::new(Kind::Keep(self.0.keep()))
    }

    /// Makes the next refresh check everything: a connection was lost.
    #[napi]
    pub fn hurry(&self) {
        self.0.hurry();
    }

    /// Returns whether looking up this dictionary now is useless.
    #[napi]
    pub fn is_missing(&self, id: u32, monotonic: f64) -> bool {
        self.0.is_missing(id, seconds(monotonic))
    }

    /// Returns whether dictionaries are not available now, for want of permission.
    #[napi]
    pub fn is_off(&self, monotonic: f64) -> bool {
        self.0.is_off(seconds(monotonic))
    }

    /// Returns whether permission was missing at the last request.
    #[napi]
    pub fn was_off(&self) -> bool {
        self.0.was_off()
    }

    /// Returns whether there was a catalogue at the last read, or one was published since.
    #[napi]
    pub fn is_known(&self) -> bool {
        self.0.is_known()
    }

    /// Notes that the catalogue is gone.
    #[napi]
    pub fn lose(&self) {
        self.0.lose();
    }

    /// Notes that this client has published a dictionary itself.
    #[napi]
    pub fn has_published(&self, dictionary: &Dictionary, monotonic: f64, wall: f64) {
        self.0.has_published(dictionary.0.clone(), now(monotonic, wall));
    }

    /// Returns whether a warning is new. Each is logged once.
    #[napi]
    pub fn is_new_warning(&self, warning: String) -> bool {
        self.0.is_new_warning(&warning)
    }
}

enum Kind {
    Fetch(rules::Task<rules::Found>),
    Refresh(rules::Task<Duration>),
    Keep(rules::Task<()>),
}

/// An event on the way.
#[napi(object, object_from_js = false)]
pub struct EventRow {
    /// `warning`, `fetched`, `put_back`, `mended` or `catalogue_lost`.
    pub kind: String,
    /// Text of a warning.
    pub text: String,
}

/// Next step of a task: exactly one of its fields besides the events is there.
#[napi(object, object_from_js = false)]
#[derive(Default)]
pub struct Step {
    /// Events since the last step.
    pub events: Vec<EventRow>,
    /// Commands to send in one round trip; answered by `replies` or `lost`.
    pub commands: Option<Vec<Vec<Buffer>>>,
    /// Seconds to wait; answered by `done`.
    pub sleep: Option<f64>,
    /// IDs whose copies are to be read; answered by `copies`.
    pub read_copies: Option<Vec<u32>>,
    /// Dictionaries whose copies are to be kept; answered by `done`.
    pub write_copies: Option<Vec<Dictionary>>,
    /// IDs whose copies are to be removed; answered by `done`.
    pub remove_copies: Option<Vec<u32>>,
    /// Outcome of `fetch`.
    pub found: Option<Vec<Dictionary>>,
    /// Outcome of `refresh`, in seconds.
    pub pause: Option<f64>,
    /// Outcome of `keep`.
    pub is_kept: Option<bool>,
}

/// A copy of a dictionary that was read.
#[napi(object, object_to_js = false)]
pub struct Copy {
    /// ID by the name of the copy.
    pub id: u32,
    /// Place where it is.
    pub place: String,
    /// Bytes of the dictionary.
    pub bytes: Buffer,
}

/// A failed command, in the place of its reply.
#[napi(object)]
pub struct Failed {
    /// Whether permission is missing.
    pub is_denied: bool,
    /// Text of the error.
    pub reason: String,
}

/// Something that takes several steps. Each of its methods takes the answer to the last one and returns the next.
#[napi]
pub struct Steps(Mutex<Kind>);

#[napi]
impl Steps {
    /// Begins.
    #[napi]
    pub fn start(&self, monotonic: f64, wall: f64) -> Step {
        self.step(None, now(monotonic, wall))
    }

    /// After `commands`: the replies, or `Failed` in the place of one.
    #[napi]
    pub fn replies(
        &self,
        #[napi(ts_arg_type = "(Buffer | string | number | null | Failed)[]")] replies: Vec<Unknown<'_>>,
        monotonic: f64,
        wall: f64,
    ) -> napi::Result<Step> {
        let replies = replies.iter().map(reply).collect::<napi::Result<_>>()?;
        Ok(self.step(Some(Answer::Replies(replies)), now(monotonic, wall)))
    }

    /// After `commands`: the server could not be asked.
    #[napi]
    pub fn lost(&self, reason: String, monotonic: f64, wall: f64) -> Step {
        self.step(Some(Answer::Lost(reason)), now(monotonic, wall))
    }

    /// After `readCopies`: those that there are.
    #[napi]
    pub fn copies(&self, copies: Vec<Copy>, monotonic: f64, wall: f64) -> Step {
        let copies = copies.into_iter().map(|copy| (copy.id, copy.place, copy.bytes.to_vec())).collect();
        self.step(Some(Answer::Copies(copies)), now(monotonic, wall))
    }

    /// After what has no result.
    #[napi]
    pub fn done(&self, monotonic: f64, wall: f64) -> Step {
        self.step(Some(Answer::Done), now(monotonic, wall))
    }
}

impl Steps {
    fn new(kind: Kind) -> Steps {
        Steps(Mutex::new(kind))
    }

    fn step(&self, answer: Option<Answer>, now: Now) -> Step {
        match &mut *self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            Kind::Fetch(task) => shown(step(task, answer, now), |found, shown| {
                shown.found = Some(found.into_values().map(Dictionary).collect());
            }),
            Kind::Refresh(task) => shown(step(task, answer, now), |pause, shown| {
                shown.pause = Some(pause.as_secs_f64());
            }),
            Kind::Keep(task) => shown(step(task, answer, now), |(), shown| shown.is_kept = Some(true)),
        }
    }
}

fn now(monotonic: f64, wall: f64) -> Now {
    Now { monotonic: seconds(monotonic), wall: seconds(wall) }
}

fn step<T>(task: &mut rules::Task<T>, answer: Option<Answer>, now: Now) -> rules::Step<T> {
    match answer {
        Some(answer) => task.resume(answer, now),
        None => task.start(now),
    }
}

fn shown<T>(step: rules::Step<T>, outcome: impl FnOnce(T, &mut Step)) -> Step {
    let mut shown = Step { events: step.events.into_iter().map(event).collect(), ..Step::default() };
    match step.next {
        Next::Done(done) => outcome(done, &mut shown),
        Next::Ask(Request::Send(commands)) => {
            let command = |command: Vec<Vec<u8>>| command.into_iter().map(Buffer::from).collect();
            shown.commands = Some(commands.into_iter().map(command).collect());
        }
        Next::Ask(Request::Sleep(pause)) => shown.sleep = Some(pause.as_secs_f64()),
        Next::Ask(Request::ReadCopies(ids)) => shown.read_copies = Some(ids),
        Next::Ask(Request::WriteCopies(all)) => {
            shown.write_copies = Some(all.into_iter().map(Dictionary).collect());
        }
        Next::Ask(Request::RemoveCopies(ids)) => shown.remove_copies = Some(ids),
    }
    shown
}

fn event(event: rules::Event) -> EventRow {
    let (kind, text) = match event {
        rules::Event::Warning(text) => ("warning", text),
        rules::Event::Fetched => ("fetched", String::new()),
        rules::Event::PutBack => ("put_back", String::new()),
        rules::Event::Mended => ("mended", String::new()),
        rules::Event::CatalogueLost => ("catalogue_lost", String::new()),
    };
    EventRow { kind: kind.to_owned(), text }
}

fn reply(reply: &Unknown<'_>) -> napi::Result<Result<Reply, rules::Failure>> {
    let value = reply.value();
    Ok(match reply.get_type()? {
        ValueType::Null | ValueType::Undefined => Ok(Reply::Nil),
        // SAFETY: the value is of this environment, and alive while `reply` is.
        ValueType::Number => Ok(Reply::Integer(unsafe { i64::from_napi_value(value.env, value.value)? })),
        ValueType::Object if !reply.is_buffer()? && !reply.is_array()? => {
            // SAFETY: as above.
            let failed = unsafe { Failed::from_napi_value(value.env, value.value)? };
            let failure = if failed.is_denied { rules::Failure::Denied } else { rules::Failure::Refused };
            Err(failure(failed.reason))
        }
        _ => Ok(bytes(reply)?.map_or(Reply::Other, Reply::Bytes)),
    })
}
