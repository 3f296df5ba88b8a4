//! COMPRESSION: what is chosen for each kind of values where the codec is `auto`, and why. A command of snugly's own.

use std::sync::Arc;
use std::time::Duration;

use snugly_protocol::resp::Args;
use snugly_store::{Band, Decision, ListStats, Measured, ReadRate};

use super::dictionary::reply_figures;
use super::introspection::{UNCOMPRESSED, look_at};
use super::registry::reply_help;
use super::{Command, Context, Flags, NO_KEYS, Outcome, Reply, SUBCOMMAND_KEY, command, container};
use crate::info::compression::DECISION;
use crate::stat::{Stat, Value, plain};

#[rustfmt::skip]
pub(super) const COMMANDS: &[Command] = &[
    container("compression", &[
        command("explain", 3, Flags::READONLY, SUBCOMMAND_KEY, explain),
        command("list", 2, Flags::ADMINISTRATION, NO_KEYS, list),
        command("help", 2, Flags::ANY_TIME, NO_KEYS, help),
    ]),
];

/// One of the methods that were measured for a class, and what was decided from it.
struct Candidate {
    decision: Arc<Decision>,
    place: usize,
}

impl Candidate {
    fn measured(&self) -> &Measured {
        &self.decision.measured[self.place]
    }

    fn worth(&self) -> f64 {
        let Decision { goal, population, reads, .. } = *self.decision;
        self.measured().worth(goal, population, reads)
    }

    /// How often values are read that are encoded so where they stay, in words.
    fn kept_if(&self) -> String {
        let kept = self.decision.stages.kept;
        let rates = ReadRate::ALL.into_iter().filter(|rate| kept[*rate as usize] == self.place);
        rates.map(ReadRate::name).collect::<Vec<_>>().join(" ")
    }

    /// The time of one value, of what is the time of all.
    fn each(&self, of: fn(&Measured) -> Duration) -> Value {
        let measured = self.measured();
        Value::Count(of(measured).as_nanos() as u64 / measured.values.max(1) as u64)
    }
}

#[rustfmt::skip]
const CANDIDATE: &[Stat<Candidate>] = &[
    plain("codec", |c| Value::Text(c.measured().choice.codec().name().to_owned())),
    plain("level", |c| Value::Difference(c.measured().choice.level().into())),
    plain("dictionary", |c| c.measured().dictionary.is_some().into()),
    plain("ratio", |c| Value::Real(c.measured().ratio(), 3)),
    plain("saved_bytes", |c| Value::Real(c.measured().saved_each(), 1)),
    plain("encode_nanoseconds", |c| c.each(|measured| measured.encode)),
    plain("decode_nanoseconds", |c| c.each(|measured| measured.decode)),
    plain("worth_nanoseconds", |c| Value::Difference(c.worth() as i64)),
    plain("chosen", |c| (c.place == c.decision.stages.written).into()),
    plain("kept", |c| Value::Text(c.kept_if())),
];

/// Explains how a list is stored: it is compressed by the settings of lists, whatever is chosen for strings.
#[rustfmt::skip]
const LIST: &[Stat<ListStats>] = &[
    plain("type", |_| Value::Text("list".to_owned())),
    plain("stored_codec", |l| Value::Text(l.codec.unwrap_or(UNCOMPRESSED).to_owned())),
    plain("elements", |l| Value::Count(l.elements)),
    plain("nodes", |l| Value::Count(l.nodes as u64)),
    plain("compressed_nodes", |l| Value::Count(l.compressed_nodes as u64)),
    plain("stored_dictionary", |l| l.dictionary.map_or(Value::Unknown, |number| Value::Count(number.into()))),
    plain("dictionary_nodes", |l| Value::Count(l.dictionary_nodes as u64)),
    plain("stored_bytes", |l| Value::Bytes(l.stored_bytes)),
    plain("original_bytes", |l| Value::Bytes(l.raw_bytes)),
];

fn explain(context: &mut Context<'_>, args: Args<'_>) -> Outcome {
    let Some(value) = look_at(context, args)? else {
        context.replies.null();
        return Ok(Reply::Now);
    };
    if let Some(list) = value.list() {
        context.replies.map(LIST.len());
        reply_figures(context, LIST, &list);
        return Ok(Reply::Now);
    }
    let Some(record) = value.record() else {
        context.replies.null();
        return Ok(Reply::Now);
    };
    let decision = context.server.store().decision_for(&args[2], value.len());
    let fields = decision.as_ref().map_or(0, |_| DECISION.len() + 1);
    context.replies.map(6 + fields);
    context.replies.bulk(b"stored_codec");
    context.replies.bulk(record.codec().name().as_bytes());
    context.replies.bulk(b"stored_dictionary");
    match record.dictionary() {
        Some(number) => context.replies.integer(number.into()),
        None => context.replies.null(),
    }
    context.replies.bulk(b"stored_bytes");
    context.replies.integer(record.payload().len() as i64);
    context.replies.bulk(b"original_bytes");
    context.replies.integer(value.len() as i64);
    context.replies.bulk(b"stage");
    context.replies.bulk(value.stage().name().as_bytes());
    context.replies.bulk(b"reason");
    let reason = reason(context, decision.as_deref(), value.len());
    context.replies.bulk(reason.as_bytes());
    if let Some(decision) = decision {
        reply_figures(context, DECISION, &decision);
        context.replies.bulk(b"methods");
        context.replies.array(decision.measured.len());
        for place in 0..decision.measured.len() {
            context.replies.map(CANDIDATE.len());
            reply_figures(context, CANDIDATE, &Candidate { decision: decision.clone(), place });
        }
    }
    Ok(Reply::Now)
}

/// In words, why new values of such a key are encoded as they are.
fn reason(context: &Context<'_>, decision: Option<&Decision>, len: usize) -> String {
    let settings = context.server.store().settings();
    let codec = settings.compression.codec().name();
    let Some(goal) = settings.goal else {
        return format!("all values are encoded with {codec}: compression is not auto");
    };
    if decision.is_none() && Band::of(len).is_none() {
        return format!(
            "values of this length are all encoded with {codec}: it is chosen for {} to {} bytes",
            Band::START,
            Band::END - 1
        );
    }
    let Some(decision) = decision else {
        return format!("values are encoded with {codec} until enough of this kind were written to choose");
    };
    let chosen = decision.chosen();
    if !chosen.choice.compresses() {
        return format!(
            "for {goal}, nothing that was tried saves what it costs: a saved byte may cost {} ns",
            goal.price()
        );
    }
    format!(
        "for {goal}, a saved byte may cost {} ns: {} {}{} saves {:.0} bytes a value and costs {} ns, read {:.1} times",
        goal.price(),
        chosen.choice.codec().name(),
        chosen.choice.level(),
        if chosen.dictionary.is_some() { " with a dictionary" } else { "" },
        chosen.saved_each(),
        chosen.time(decision.reads).as_nanos(),
        decision.reads,
    )
}

fn list(context: &mut Context<'_>, _args: Args<'_>) -> Outcome {
    let decisions = context.server.store().decisions();
    context.replies.array(decisions.len());
    for decision in &decisions {
        context.replies.map(DECISION.len());
        reply_figures(context, DECISION, decision);
    }
    Ok(Reply::Now)
}

fn help(context: &mut Context<'_>, _args: Args<'_>) -> Outcome {
    reply_help(context, "compression")
}
