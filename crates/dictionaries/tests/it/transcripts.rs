//! The transcripts of `spec/vectors/manager.json`, with the requests and actions of a manager, played against
//! this crate.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use snugly_codec::Dictionary;
use snugly_dictionaries::{
    Answer, DictionaryCache, Event, Failure, Found, Keys, Manager, Next, Now, Reply, Request, Settings, Step,
    Task,
};

/// The wall clock when a transcript begins, since 1970.
const BEGIN: Duration = Duration::from_secs(1_769_860_800);

fn vectors(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).unwrap()
}

fn dictionaries() -> HashMap<String, Arc<Dictionary>> {
    let vectors = vectors(include_bytes!("../../../../spec/vectors/envelopes.json"));
    let load = |row: &Value| {
        let hex = row["bytes"]["hex"].as_str().unwrap();
        let byte = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
        Arc::new(Dictionary::load((0..hex.len()).step_by(2).map(byte).collect::<Vec<_>>()).unwrap())
    };
    let rows = vectors["dictionaries"].as_object().unwrap();
    rows.iter().map(|(name, row)| (name.clone(), load(row))).collect()
}

struct Player {
    dictionaries: HashMap<String, Arc<Dictionary>>,
    manager: Arc<Manager>,
    now: Duration,
    events: Vec<Event>,
}

/// A task of any result.
enum Any {
    Fetch(Task<Found>),
    Refresh(Task<Duration>),
    Keep(Task<()>),
}

impl Any {
    fn step(&mut self, answer: Option<Answer>, now: Now, player: &Player) -> Step<Value> {
        fn step<T>(
            task: &mut Task<T>,
            answer: Option<Answer>,
            now: Now,
            shown: impl FnOnce(T) -> Value,
        ) -> Step<Value> {
            let Step { events, next } = match answer {
                Some(answer) => task.resume(answer, now),
                None => task.start(now),
            };
            let next = match next {
                Next::Ask(request) => Next::Ask(request),
                Next::Done(outcome) => Next::Done(shown(outcome)),
            };
            Step { events, next }
        }
        match self {
            Any::Fetch(task) => step(task, answer, now, |found| {
                let mut ids: Vec<u32> = found.into_keys().collect();
                ids.sort_unstable();
                ids.into_iter().map(|id| player.name(id)).collect()
            }),
            Any::Refresh(task) => step(task, answer, now, |pause| json!(pause.as_secs_f64())),
            Any::Keep(task) => step(task, answer, now, |()| Value::Null),
        }
    }
}

impl Player {
    fn new(client: &Value) -> Player {
        let dictionaries = dictionaries();
        let is = |field: &str| client[field].as_bool().unwrap_or(false);
        let given = client["given"].as_str().map(|name| dictionaries[name].clone());
        let is_allowed = given.is_none();
        let cache = DictionaryCache::new(given, is("writes"), is_allowed, Vec::new());
        let settings = Settings {
            prefix: Keys::DEFAULT_PREFIX.to_owned(),
            refresh: Duration::from_secs_f64(client["refresh"].as_f64().unwrap_or(60.0)),
            waits: is("waits"),
            has_copies: is("has_copies"),
            read_timeout: client["read_timeout"].as_f64().map(Duration::from_secs_f64),
        };
        let manager = Arc::new(Manager::new(settings, Arc::new(cache)));
        Player { dictionaries, manager, now: Duration::from_secs(7), events: Vec::new() }
    }

    fn now(&self) -> Now {
        Now { monotonic: self.now, wall: BEGIN + self.now - Duration::from_secs(7) }
    }

    fn pass(&mut self, seconds: f64) {
        self.now += Duration::from_secs_f64(seconds);
    }

    fn id(&self, name: &Value) -> u32 {
        self.dictionaries[name.as_str().unwrap()].id()
    }

    fn ids(&self, names: &Value) -> Vec<u32> {
        names.as_array().unwrap().iter().map(|name| self.id(name)).collect()
    }

    fn name(&self, id: u32) -> Value {
        let found = self.dictionaries.iter().find(|(_, dictionary)| dictionary.id() == id);
        found.map_or(json!(id), |(name, _)| json!(name))
    }

    fn bytes(&self, value: &Value) -> Vec<u8> {
        match value {
            Value::String(text) => text.clone().into_bytes(),
            value if value.get("key_of").is_some() => {
                self.manager.keys().dictionary(self.id(&value["key_of"]))
            }
            value if value.get("dictionary").is_some() => {
                self.dictionaries[value["dictionary"].as_str().unwrap()].bytes().to_vec()
            }
            value => self.catalogue(&value["catalogue"]),
        }
    }

    fn catalogue(&self, catalogue: &Value) -> Vec<u8> {
        let nothing = serde_json::Map::new();
        let active = catalogue["active"].as_object().unwrap_or(&nothing);
        let forgotten = catalogue.get("forgotten").map_or(Vec::new(), |names| self.ids(names));
        let published = catalogue["published_at"].as_u64().map(|at| at + BEGIN.as_secs());
        let rows = |dictionary: bool| -> Vec<Value> {
            let row = |(pattern, name): (&String, &Value)| {
                let mut row = json!({"pattern": pattern, "id": self.id(name)});
                if let Some(at) = published.filter(|_| dictionary) {
                    row["published_at"] = json!(at);
                }
                row
            };
            active.iter().map(row).collect()
        };
        let document = json!({
            "version": 1, "active": rows(false), "dictionaries": rows(true), "forgotten": forgotten,
        });
        document.to_string().into_bytes()
    }

    fn reply(&self, reply: &Value) -> Result<Reply, Failure> {
        let text = |field: &str| reply[field].as_str().map(str::to_owned);
        if let Some(reason) = text("denied") {
            return Err(Failure::Denied(reason));
        }
        if let Some(reason) = text("refused") {
            return Err(Failure::Refused(reason));
        }
        Ok(match reply {
            Value::Null => Reply::Nil,
            Value::Number(number) => Reply::Integer(number.as_i64().unwrap()),
            reply => Reply::Bytes(self.bytes(reply)),
        })
    }

    fn answer(&self, answer: &Value) -> Answer {
        if let Some(reason) = answer["lost"].as_str() {
            return Answer::Lost(reason.to_owned());
        }
        if let Some(replies) = answer["replies"].as_array() {
            return Answer::Replies(replies.iter().map(|reply| self.reply(reply)).collect());
        }
        let Some(copies) = answer["copies"].as_array() else { return Answer::Done };
        let copy =
            |name: &Value| (self.id(name), "a file".to_owned(), self.bytes(&json!({"dictionary": name})));
        Answer::Copies(copies.iter().map(copy).collect())
    }

    /// Returns whether a request is that of a transcript.
    fn is(&self, request: &Request, expected: &Value) -> bool {
        let names = |ids: &[u32]| ids.iter().map(|id| self.name(*id)).collect::<Value>();
        match request {
            Request::Send(commands) => {
                let arguments = |command: &Value| -> Vec<Vec<u8>> {
                    command.as_array().unwrap().iter().map(|argument| self.bytes(argument)).collect()
                };
                let expected = expected["send"].as_array();
                expected
                    .is_some_and(|expected| *commands == expected.iter().map(arguments).collect::<Vec<_>>())
            }
            Request::Sleep(pause) => {
                expected["sleep"].as_f64().is_some_and(|seconds| (pause.as_secs_f64() - seconds).abs() < 1e-6)
            }
            Request::ReadCopies(ids) => expected["read_copies"] == names(ids),
            Request::RemoveCopies(ids) => expected["remove_copies"] == names(ids),
            Request::WriteCopies(all) => {
                expected["write_copies"] == names(&all.iter().map(|each| each.id()).collect::<Vec<_>>())
            }
        }
    }

    fn begin(&mut self, step: &Value) -> Option<Any> {
        let manager = self.manager.clone();
        match step["do"].as_str().unwrap() {
            "fetch" => return Some(Any::Fetch(manager.fetch(self.ids(&step["ids"])))),
            "refresh" => return Some(Any::Refresh(manager.refresh())),
            "keep" => return Some(Any::Keep(manager.keep())),
            "pass" => self.pass(step["seconds"].as_f64().unwrap()),
            "hurry" => manager.hurry(),
            "hold" => {
                for name in step["ids"].as_array().unwrap() {
                    let dictionary = self.dictionaries[name.as_str().unwrap()].clone();
                    manager.cache().hold(dictionary, self.now().wall);
                }
            }
            "read" => {
                let document = self.catalogue(&step["catalogue"]);
                manager.cache().read(Some(&document), self.now().wall, Duration::from_secs(60)).unwrap();
            }
            "look" => {}
            other => panic!("{other} is nothing to do"),
        }
        None
    }

    fn check_events(&mut self, expected: &Value) {
        let events = std::mem::take(&mut self.events);
        let nothing = Vec::new();
        let expected = expected.as_array().unwrap_or(&nothing);
        assert_eq!(events.len(), expected.len(), "{events:?}");
        for (event, expected) in events.iter().zip(expected) {
            let is_it = match event {
                Event::Warning(text) => {
                    expected["warning"].as_str().is_some_and(|expected| text.contains(expected))
                }
                Event::Fetched => expected == "fetched",
                Event::PutBack => expected == "put_back",
                Event::Mended => expected == "mended",
                Event::CatalogueLost => expected == "catalogue_lost",
            };
            assert!(is_it, "{event:?} is not {expected}");
        }
    }

    fn check(&self, step: &Value) {
        let (cache, now) = (self.manager.cache(), self.now().monotonic);
        if let Some(missing) = step.get("missing") {
            let all = self.dictionaries.values().map(|dictionary| dictionary.id());
            let mut found: Vec<u32> = all.filter(|id| self.manager.is_missing(*id, now)).collect();
            let mut expected = self.ids(missing);
            found.sort_unstable();
            expected.sort_unstable();
            assert_eq!(found, expected, "are missing");
        }
        if let Some(off) = step.get("off") {
            assert_eq!(Some(self.manager.is_off(now)), off.as_bool(), "dictionaries are off");
        }
        if let Some(held) = step.get("holds") {
            assert_eq!(cache.ids(), self.ids(held), "are at hand");
        }
        for (key, name) in step["writes_with"].as_object().into_iter().flatten() {
            let found = cache.for_key(key.as_bytes()).map_or(Value::Null, |found| self.name(found.id()));
            assert_eq!(found, *name, "{key} is written with it");
        }
    }

    fn play(&mut self, steps: &[Value]) {
        let mut running: Option<Any> = None;
        let mut next = None;
        for step in steps {
            if step.get("do").is_some() {
                assert!(next.is_none(), "the task before has not ended, {step}");
                running = self.begin(step);
                next = running.as_mut().map(|task| task.step(None, self.now(), self));
            } else if let Some(expected) = step.get("ask") {
                let Some(Step { events, next: Next::Ask(request) }) = next.take() else {
                    panic!("nothing is asked, but {expected} is expected")
                };
                assert!(self.is(&request, expected), "{request:?} is not {expected}");
                self.events.extend(events);
                let slept = expected["sleep"].as_f64();
                self.pass(step["after"].as_f64().or(slept).unwrap_or(0.0));
                let answer = self.answer(&step["answer"]);
                next = running.as_mut().map(|task| task.step(Some(answer), self.now(), self));
            } else {
                let Some(Step { events, next: Next::Done(outcome) }) = next.take() else {
                    panic!("it is not done at {step}: {next:?}")
                };
                self.events.extend(events);
                let is_same = match (outcome.as_f64(), step["done"].as_f64()) {
                    (Some(outcome), Some(expected)) => (outcome - expected).abs() < 1e-6,
                    _ => outcome == step["done"],
                };
                assert!(is_same, "{outcome} comes of it, not {}", step["done"]);
                self.check_events(&step["events"]);
            }
            self.check(step);
        }
        assert!(next.is_none(), "the last task has not ended");
    }
}

#[test]
fn a_forked_process_does_not_wait_for_look_ups_of_its_parent() {
    let player = Player::new(&Value::Null);
    let look_up = || {
        let mut task = player.manager.fetch(vec![1]);
        let is_asking = matches!(task.start(player.now()).next, Next::Ask(Request::Send(_)));
        // The task never ends: its thread is not in the child.
        std::mem::forget(task);
        is_asking
    };
    assert_eq!((look_up(), look_up()), (true, false), "one asks for all");
    player.manager.forget_tasks();
    assert!(look_up());
}

#[test]
fn a_listed_dictionary_is_waited_for_no_longer_than_a_reply_and_may_be_there_later() {
    let steps = json!([
        {"do": "read", "catalogue": {"active": {"user:*": "profiles"}}},
        {"do": "fetch", "ids": ["profiles"]},
        {"ask": {"send": [["GET", {"key_of": "profiles"}]]}, "answer": {"replies": [null]}},
        {"ask": {"sleep": 0.02}, "after": 0.09},
        {"ask": {"send": [["GET", {"key_of": "profiles"}]]}, "answer": {"replies": [null]}},
        {"ask": {"sleep": 0.04}},
        {"ask": {"send": [["GET", {"key_of": "profiles"}]]}, "answer": {"replies": [null]}},
        {"done": [], "missing": []}
    ]);
    let client = json!({"refresh": 12, "read_timeout": 0.1});
    Player::new(&client).play(steps.as_array().unwrap());
}

#[test]
fn a_manager_asks_and_does_what_the_transcripts_say() {
    let vectors = vectors(include_bytes!("../../../../spec/vectors/manager.json"));
    let transcripts = vectors["transcripts"].as_array().unwrap();
    assert!(!transcripts.is_empty());
    for transcript in transcripts {
        println!("{}", transcript["name"]);
        Player::new(&transcript["client"]).play(transcript["steps"].as_array().unwrap());
    }
}
