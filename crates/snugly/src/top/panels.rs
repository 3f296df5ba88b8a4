//! Panels: what is told of the picture, in words and numbers, and under which titles.
//!
//! Knows the picture. A row of which the server tells nothing is left out, and so is a panel without rows. Must not know
//! where on the screen they are, or in which colours.

use super::numbers::{bytes, count, known, percent, span, time};
use super::picture::{Order, Picture};
use super::rates::{Rates, saved, share};
use super::readings::{Class, Family, Reading};

/// Something under a title.
pub(super) enum Panel {
    Facts(Facts),
    Table(Table),
    Chart(Chart),
}

impl Panel {
    /// Leaves out what says nothing after two looks.
    pub(super) fn leave_out_trends(&mut self) {
        let Panel::Facts(facts) = self else { return };
        for row in &mut facts.rows {
            if matches!(row.tail, Tail::Trend(_)) {
                row.tail = Tail::Nothing;
            }
        }
    }
}

/// Rows of a name, numbers, and what makes them clear.
pub(super) struct Facts {
    pub(super) title: &'static str,
    /// Titles of the numbers; none if they need none.
    pub(super) heads: &'static [&'static str],
    pub(super) rows: Vec<Row>,
}

pub(super) struct Row {
    pub(super) name: &'static str,
    pub(super) numbers: Vec<String>,
    pub(super) tail: Tail,
}

pub(super) enum Tail {
    Nothing,
    Note(String),
    /// A part of a whole.
    Bar(f64),
    /// Numbers over time, the latest first.
    Trend(Vec<Option<f64>>),
}

/// Rows under heads. The first column is text; the last ones are left out where there is no room.
pub(super) struct Table {
    pub(super) title: String,
    pub(super) heads: &'static [&'static str],
    pub(super) rows: Vec<Vec<String>>,
    /// A part of a whole for each row.
    pub(super) bars: Vec<f64>,
    /// Words in place of rows, where there are none.
    pub(super) empty: &'static str,
}

/// One number over time, the latest first.
pub(super) struct Chart {
    pub(super) title: &'static str,
    pub(super) trend: Vec<Option<f64>>,
    pub(super) show: fn(f64) -> String,
}

/// Something that needs attention.
pub(super) struct Note {
    pub(super) text: String,
    pub(super) is_bad: bool,
}

type OfRates = fn(&Rates) -> Option<f64>;

type Show = fn(f64) -> String;

/// The picture and its latest reading.
struct Seen<'a> {
    picture: &'a Picture,
    reading: &'a Reading,
    rates: &'a Rates,
}

impl Seen<'_> {
    fn trend(&self, of: OfRates) -> Tail {
        Tail::Trend(self.picture.history.trend(of))
    }

    /// A field of INFO.
    fn field(&self, name: &'static str, field: &str, show: Show) -> Option<Row> {
        self.noted(name, field, show, |_| None)
    }

    /// A field of INFO, and a note about it.
    fn noted(
        &self,
        name: &'static str,
        field: &str,
        show: Show,
        note: impl Fn(f64) -> Option<String>,
    ) -> Option<Row> {
        let number = self.reading.number(field)?;
        let tail = note(number).map_or(Tail::Nothing, Tail::Note);
        Some(Row { name, numbers: vec![show(number)], tail })
    }

    /// A rate over time, if the server has the field that it is of.
    fn rate(&self, name: &'static str, field: &str, of: OfRates, show: Show) -> Option<Row> {
        self.reading.number(field)?;
        Some(Row { name, numbers: vec![known(of(self.rates), show)], tail: self.trend(of) })
    }

    /// A rate, and the count that it is of.
    fn counted(&self, name: &'static str, field: &str, of: OfRates) -> Option<Row> {
        let all = self.reading.number(field)?;
        Some(Row { name, numbers: vec![known(of(self.rates), count), count(all)], tail: self.trend(of) })
    }

    /// Whether the server has a limit of memory.
    fn limit(&self) -> Option<f64> {
        self.reading.number("maxmemory").filter(|limit| *limit > 0.0)
    }

    /// The field with the memory that the limit is about: snugly's is about keys and values.
    fn limited(&self) -> &'static str {
        match self.reading.text("snugly_version") {
            Some(_) => "used_memory_dataset",
            None => "used_memory",
        }
    }
}

fn facts(
    title: &'static str,
    heads: &'static [&'static str],
    rows: impl IntoIterator<Item = Option<Row>>,
) -> Option<Panel> {
    let rows: Vec<Row> = rows.into_iter().flatten().collect();
    (!rows.is_empty()).then_some(Panel::Facts(Facts { title, heads, rows }))
}

fn made(picture: &Picture, makers: &[fn(&Seen<'_>) -> Option<Panel>]) -> Vec<Panel> {
    let Some(reading) = picture.reading.as_deref() else { return Vec::new() };
    let seen = Seen { picture, reading, rates: picture.history.latest() };
    makers.iter().filter_map(|make| make(&seen)).collect()
}

/// Panels that everybody looks at first.
pub(super) fn overview(picture: &Picture) -> Vec<Panel> {
    made(picture, &[operations, memory, savings, latency, clients, keys])
}

/// Panels about savings of compression.
pub(super) fn tables(picture: &Picture) -> Vec<Panel> {
    made(picture, &[codecs, classes, dictionaries])
}

/// Panels about work beside answering.
pub(super) fn work(picture: &Picture) -> Vec<Panel> {
    made(picture, &[learning, anew, processor, left_alone, disk, snapshots, lists])
}

/// The numbers that say the most over time.
pub(super) fn charts(picture: &Picture) -> Vec<Panel> {
    const SLOW: OfRates = |rates| rates.slow[Family::Reads as usize];
    let rows: [(&'static str, OfRates, Show); 4] = [
        ("Commands per s", |rates| rates.commands, count),
        ("99 % of reads took no longer than", SLOW, time),
        ("Physical memory", |rates| rates.resident, bytes),
        ("Keys that were found", |rates| rates.hits, percent),
    ];
    let chart = |(title, of, show): (&'static str, OfRates, Show)| {
        let trend = picture.history.trend(of);
        trend.iter().any(Option::is_some).then_some(Panel::Chart(Chart { title, trend, show }))
    };
    rows.into_iter().filter_map(chart).collect()
}

fn operations(seen: &Seen<'_>) -> Option<Panel> {
    let of_family = |family: Family| {
        let place = family as usize;
        let all = seen.reading.calls[place]?;
        let numbers = vec![known(seen.rates.calls[place], count), count(all)];
        let tail = Tail::Trend(seen.picture.history.trend(|rates| rates.calls[place]));
        Some(Row { name: family.name(), numbers, tail })
    };
    let all = seen.counted("all", "total_commands_processed", |rates| rates.commands);
    facts("Commands", &["per s", "in all"], std::iter::once(all).chain(Family::ALL.map(of_family)))
}

fn latency(seen: &Seen<'_>) -> Option<Panel> {
    let histograms = seen.reading.histograms.as_ref()?;
    let of_family = |family: Family| {
        let place = family as usize;
        if histograms[place].is_empty() {
            return None;
        }
        let numbers = [seen.rates.median[place], seen.rates.slow[place]].map(|seconds| known(seconds, time));
        let tail = Tail::Trend(seen.picture.history.trend(|rates| rates.slow[place]));
        Some(Row { name: family.name(), numbers: numbers.to_vec(), tail })
    };
    facts("Latency", &["median", "99 %"], Family::ALL.map(of_family))
}

fn keys(seen: &Seen<'_>) -> Option<Panel> {
    let field = |name| seen.reading.number(name);
    let found = field("keyspace_hits").zip(field("keyspace_misses")).map(|(hits, misses)| Row {
        name: "found",
        numbers: vec![known(seen.rates.hits, percent), known(share(Some(hits), Some(misses)), percent)],
        tail: seen.trend(|rates| rates.hits),
    });
    let stored = seen.reading.keyspace("keys").map(|keys| Row {
        name: "stored",
        numbers: vec![String::new(), count(keys)],
        tail: seen
            .reading
            .keyspace("expires")
            .map_or(Tail::Nothing, |expire| Tail::Note(format!("{} expire", count(expire)))),
    });
    let rows = [
        found,
        stored,
        seen.counted("evicted", "evicted_keys", |rates| rates.evicted),
        seen.counted("expired", "expired_keys", |rates| rates.expired),
    ];
    facts("Keys", &["now", "in all"], rows)
}

fn memory(seen: &Seen<'_>) -> Option<Panel> {
    let part = |field: &str| Some(seen.reading.number(field)? / seen.limit()?);
    let row = |name, field: &str, of: OfRates| {
        let number = seen.reading.number(field)?;
        let is_limited = field == seen.limited();
        let tail = part(field).filter(|_| is_limited).map_or_else(|| seen.trend(of), Tail::Bar);
        Some(Row { name, numbers: vec![bytes(number)], tail })
    };
    let limit = seen.reading.number("maxmemory").map(|limit| match limit > 0.0 {
        true => {
            let policy = seen.reading.text("maxmemory_policy").unwrap_or_default();
            let note = format!("{} full, {policy}", known(part(seen.limited()), percent));
            Row { name: "limit", numbers: vec![bytes(limit)], tail: Tail::Note(note) }
        }
        false => Row { name: "limit", numbers: vec!["none".to_owned()], tail: Tail::Nothing },
    });
    let given = seen.reading.number("dataset_given_bytes").map(|given| {
        let each = given / seen.reading.number("used_memory_dataset").unwrap_or_default().max(1.0);
        let tail = Tail::Note(format!("{each:.2} for each byte"));
        Row { name: "given", numbers: vec![bytes(given)], tail }
    });
    let rows = [
        given,
        row("dataset", "used_memory_dataset", |rates| rates.dataset),
        limit,
        row("process", "used_memory", |rates| rates.used),
        row("physical", "used_memory_rss", |rates| rates.resident),
    ];
    facts("Memory", &[], rows)
}

fn savings(seen: &Seen<'_>) -> Option<Panel> {
    let given = seen.reading.of_codecs(|codec| codec.given)?;
    let stored = seen.reading.of_codecs(|codec| codec.stored)?;
    let part = saved(Some(given), Some(stored));
    let ratio = if stored > 0.0 { format!(", ratio {:.2}", given / stored) } else { String::new() };
    let rows = [
        ("given", bytes(given), Tail::Bar(f64::from(given > 0.0))),
        ("stored", bytes(stored), Tail::Bar(part.map_or(0.0, |part| 1.0 - part))),
        ("saved", bytes(given - stored), Tail::Note(format!("{}{ratio}", known(part, percent)))),
        ("saved now", known(seen.rates.saved, percent), seen.trend(|rates| rates.saved)),
    ];
    facts(
        "Values written",
        &[],
        rows.map(|(name, number, tail)| Some(Row { name, numbers: vec![number], tail })),
    )
}

fn each_second(number: f64) -> String {
    format!("{}/s", bytes(number))
}

fn clients(seen: &Seen<'_>) -> Option<Panel> {
    let of_all = |_| {
        let waiting = seen.reading.number("blocked_clients").filter(|waiting| *waiting > 0.0);
        let waiting = waiting.map(|waiting| format!(", {} wait", count(waiting))).unwrap_or_default();
        Some(format!("of {}{waiting}", count(seen.reading.number("maxclients")?)))
    };
    let rows = [
        seen.noted("clients", "connected_clients", count, of_all),
        seen.rate("new per s", "total_connections_received", |rates| rates.connections, count),
        seen.rate("from clients", "total_net_input_bytes", |rates| rates.input, each_second),
        seen.rate("to clients", "total_net_output_bytes", |rates| rates.output, each_second),
        seen.rate("processor", "used_cpu_user", |rates| rates.processor, percent),
    ];
    facts("Clients", &[], rows)
}

fn codecs(seen: &Seen<'_>) -> Option<Panel> {
    if seen.reading.codecs.is_empty() {
        return None;
    }
    let codecs = seen.reading.codecs.iter().filter(|codec| codec.values > 0.0);
    let (rows, bars) = codecs
        .map(|codec| {
            let part = saved(Some(codec.given), Some(codec.stored));
            let row = vec![
                codec.name.clone(),
                count(codec.values),
                bytes(codec.given),
                bytes(codec.stored),
                bytes(codec.given - codec.stored),
                known(part, percent),
            ];
            (row, part.unwrap_or_default())
        })
        .unzip();
    Some(Panel::Table(Table {
        title: "By codec".to_owned(),
        heads: &["codec", "values", "given", "stored", "saved", "part"],
        rows,
        bars,
        empty: "No value was written yet.",
    }))
}

fn classes(seen: &Seen<'_>) -> Option<Panel> {
    seen.reading.text("snugly_version")?;
    let mut classes: Vec<&Class> = seen.reading.classes.iter().collect();
    let saved = |class: &Class| class.saved.unwrap_or_default();
    match seen.picture.order {
        Order::Saved => {
            classes.sort_by(|a, b| saved(b).total_cmp(&saved(a)).then(b.written.total_cmp(&a.written)))
        }
        Order::Written => classes.sort_by(|a, b| b.written.total_cmp(&a.written)),
        Order::Pattern => classes.sort_by(|a, b| a.pattern.cmp(&b.pattern).then(a.least.total_cmp(&b.least))),
    }
    let most = classes.iter().map(|class| saved(class)).fold(1.0, f64::max);
    let row = |class: &Class| {
        vec![
            class.pattern.clone(),
            bytes(class.least),
            class.codec.clone().unwrap_or_else(|| "undecided".to_owned()),
            count(class.written),
            known(class.ratio, percent),
            known(class.saved, bytes),
        ]
    };
    Some(Panel::Table(Table {
        title: format!("By pattern of keys, {}", seen.picture.order.name()),
        heads: &["keys", "from", "codec", "written", "stored", "saved"],
        rows: classes.iter().map(|class| row(class)).collect(),
        bars: classes.iter().map(|class| saved(class) / most).collect(),
        empty: "Values are told apart by patterns of keys once there are some that are alike.",
    }))
}

fn dictionaries(seen: &Seen<'_>) -> Option<Panel> {
    seen.reading.text("snugly_version")?;
    let mut dictionaries: Vec<_> = seen.reading.dictionaries.iter().collect();
    dictionaries.sort_by(|a, b| b.is_active.cmp(&a.is_active).then(b.values.total_cmp(&a.values)));
    let now = seen.reading.number("server_time_usec").map(|microseconds| microseconds / 1e6);
    let rows = dictionaries.iter().map(|dictionary| {
        vec![
            dictionary.pattern.clone(),
            count(dictionary.number),
            if dictionary.is_active { "new values" } else { "old values" }.to_owned(),
            count(dictionary.values),
            known(dictionary.without, percent),
            known(dictionary.with, percent),
            known(dictionary.now, percent),
            bytes(dictionary.memory),
            known(now.map(|now| (now - dictionary.trained_at).max(0.0)), span),
        ]
    });
    Some(Panel::Table(Table {
        title: "Dictionaries: part that is stored, without and with it".to_owned(),
        heads: &["keys", "no.", "for", "values", "without", "with", "now", "memory", "age"],
        rows: rows.collect(),
        bars: dictionaries.iter().map(|dictionary| 1.0 - dictionary.with.unwrap_or(1.0)).collect(),
        empty: "One is learned once there are enough small values that are alike.",
    }))
}

fn learning(seen: &Seen<'_>) -> Option<Panel> {
    let number = |field: &str, show: Show| Some(show(seen.reading.number(field)?));
    let rows = [
        seen.field("classes", "dictionary_classes", count),
        seen.noted("samples", "dictionary_samples", count, |_| number("dictionary_sample_bytes", bytes)),
        seen.noted("trainings", "dictionary_trainings", count, |_| {
            Some(format!("{} adopted", number("dictionary_adoptions", count)?))
        }),
        seen.noted("dictionaries", "dictionaries", count, |_| {
            Some(format!("{} in use", number("dictionaries_active", count)?))
        }),
        seen.noted("memory", "dictionary_bytes", bytes, |_| {
            Some(format!("of {}", number("dictionary_max_bytes", bytes)?))
        }),
        seen.field("values with one", "dictionary_records", count),
    ];
    facts("Learning", &[], rows)
}

fn anew(seen: &Seen<'_>) -> Option<Panel> {
    let number = |field: &str, show: Show| Some(show(seen.reading.number(field)?));
    let rows = [
        seen.field("passes", "recompression_passes", count),
        seen.field("values tried", "recompression_tries", count),
        seen.noted("made smaller", "recompressed_records", count, |_| {
            Some(format!("by {}", number("recompression_saved_bytes", bytes)?))
        }),
        seen.noted("made quicker", "promoted_records", count, |_| {
            Some(format!("for {}", number("promotion_bytes", bytes)?))
        }),
        seen.field("new dictionary", "reencoded_records", count),
        seen.noted("drafts", "draft_values", count, |_| number("draft_bytes", bytes)),
    ];
    facts("Encoding anew", &[], rows)
}

fn processor(seen: &Seen<'_>) -> Option<Panel> {
    let rows = [
        seen.rate("process", "used_cpu_user", |rates| rates.processor, percent),
        seen.rate("encoding", "encode_nanoseconds", |rates| rates.encoding, percent),
        seen.rate("decoding", "decode_nanoseconds", |rates| rates.decoding, percent),
    ];
    facts("Processor, 100 % is one", &[], rows)
}

fn left_alone(seen: &Seen<'_>) -> Option<Panel> {
    let rows = [
        seen.field("too short", "skipped_small", count),
        seen.field("too long", "skipped_large", count),
        seen.field("compressed", "skipped_compressed", count),
        seen.field("not smaller", "skipped_no_gain", count),
    ];
    facts("Values stored as they are", &[], rows)
}

fn disk(seen: &Seen<'_>) -> Option<Panel> {
    let of_limit = |_| {
        let limit = seen.reading.number("disk_max_bytes").filter(|limit| *limit > 0.0)?;
        Some(format!("of {}", bytes(limit)))
    };
    let waited = |_| Some(time(seen.reading.number("disk_pending_milliseconds")? / 1e3));
    let rows = [
        seen.noted("used", "disk_used_bytes", bytes, of_limit),
        seen.field("files", "disk_file_bytes", bytes),
        seen.noted("waits", "disk_pending_bytes", bytes, waited),
        seen.rate("commits per s", "disk_commits", |rates| rates.disk_commits, count),
        seen.rate("commit takes", "disk_commits", |rates| rates.commit, time),
        seen.rate("written", "disk_commit_bytes", |rates| rates.disk_written, each_second),
        seen.rate("reads per s", "disk_reads", |rates| rates.disk_reads, count),
    ];
    facts("Disk", &[], rows)
}

fn snapshots(seen: &Seen<'_>) -> Option<Panel> {
    let is_running = |_| {
        let is_running = seen.reading.number("rdb_bgsave_in_progress") == Some(1.0);
        is_running.then(|| "one is being saved".to_owned())
    };
    let outcome = |_| Some(format!("the last: {}", seen.reading.text("rdb_last_bgsave_status")?));
    let rows = [
        seen.noted("saved", "rdb_saves", count, outcome),
        seen.noted("changes since", "rdb_changes_since_last_save", count, is_running),
    ];
    facts("Snapshots", &[], rows)
}

fn lists(seen: &Seen<'_>) -> Option<Panel> {
    let given = |_| Some(format!("for {}", bytes(seen.reading.number("list_original_bytes")?)));
    let compressed = |_| Some(format!("{} compressed", count(seen.reading.number("list_compressed_nodes")?)));
    let rows = [
        seen.field("lists", "lists", count),
        seen.field("elements", "list_elements", count),
        seen.noted("nodes", "list_nodes", count, compressed),
        seen.noted("memory", "list_memory_bytes", bytes, given),
    ];
    facts("Lists", &[], rows)
}

/// Notes on what needs attention now.
pub(super) fn notes(picture: &Picture) -> Vec<Note> {
    const BAD_COUNTS: [(&str, &str); 3] = [
        ("disk_damaged_reads", "Damage was met on the disk: see `snugly check`."),
        ("decode_failures", "Some values could not be read; the log names their keys."),
        ("broken_connections", "A command panicked, which is a bug: please report what the log says."),
    ];
    let lost =
        picture.lost.iter().map(|error| Note { text: format!("{error}. Trying again."), is_bad: true });
    let mut notes: Vec<Note> = lost.collect();
    let Some(reading) = picture.reading.as_deref() else { return notes };
    let above_zero = |field: &str| reading.number(field).is_some_and(|count| count > 0.0);
    let bad = BAD_COUNTS.iter().filter(|(field, _)| above_zero(field));
    notes.extend(bad.map(|(_, text)| Note { text: (*text).to_owned(), is_bad: true }));
    if reading.text("disk_last_commit_status").is_some_and(|status| status == "err") {
        notes.push(Note { text: "The disk cannot be written: the log says why.".to_owned(), is_bad: true });
    }
    if picture.history.latest().evicted.is_some_and(|evicted| evicted > 0.0) {
        notes.push(Note { text: "Memory is full: keys are evicted to make room.".to_owned(), is_bad: false });
    }
    notes
}
