//! Settings: module configurations, which CONFIG GET, SET and REWRITE and valkey.conf know as `snugly.NAME`.
//!
//! It knows their names, ranges and defaults, and what follows from them; whoever follows it asks.

use std::ffi::{CStr, c_char, c_int, c_longlong, c_uint, c_void};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use snugly_codec::Choice;
use snugly_codec::envelope::ExistingEnvelopes;

use crate::guard;
use crate::server::table::{self, Ctx, Str, functions};
use crate::server::{Context, OwnedText};

/// Length of the shortest envelope that is stored or restored, in bytes.
///
/// The server keeps shorter strings as numbers or inside their keys, where the module could not read them without
/// changing that; so strings below this are never looked at, and cost nothing.
pub const LEAST_ENVELOPE: usize = 128;

/// A setting with its default and its least and greatest value, all numbers.
struct Setting {
    name: &'static CStr,
    kind: Kind,
    default: i64,
    value: AtomicI64,
}

enum Kind {
    /// One of these names, whose number is its place.
    Choice(&'static [&'static CStr]),
    /// From the one to the other, with flags for the server.
    Number(i64, i64, c_uint),
}

const COMPRESSIONS: &[&CStr] = &[c"no", c"yes", c"observe"];
const YES: i64 = 1;
const OBSERVE: i64 = 2;
const CODECS: &[&CStr] = &[c"lz4", c"zstd"];
const SWITCH: &[&CStr] = &[c"no", c"yes"];
const FLEETS: &[&CStr] = &[c"uniform", c"mixed"];
/// Place of `mixed`.
const MIXED: i64 = 1;
/// `VALKEYMODULE_CONFIG_MEMORY`: bytes, which may be given as `1kb`.
const MEMORY: c_uint = 1 << 7;

/// Whether strings are compressed; `observe` walks over them and tells what would be saved. Reads restore what is compressed
/// in any case.
static COMPRESSION: Setting = Setting::new(c"compression", Kind::Choice(COMPRESSIONS), YES);
/// The codec of strings that clients write.
static CODEC: Setting = Setting::new(c"codec", Kind::Choice(CODECS), 0);
/// Level of the codec: -128 to 12 for lz4, -131072 to 22 for zstd; 0 is the codec's default.
static LEVEL: Setting = Setting::new(c"level", Kind::Number(-131_072, 22, 0), 0);
/// Bytes from which on strings are compressed.
static MIN_BYTES: Setting =
    Setting::new(c"min-bytes", Kind::Number(LEAST_ENVELOPE as i64, 512 << 20, MEMORY), 256);

/// Share of a processor for compressing strings that are there, in percent; 0 for none.
static BACKGROUND_CPU: Setting = Setting::new(c"background-cpu-percent", Kind::Number(0, 100, 0), 10);
/// Seconds without use after which a string is compressed once more, as small as it gets; 0 for never.
static COLD_AFTER: Setting = Setting::new(c"cold-after", Kind::Number(0, i32::MAX as i64, 0), 600);

/// Whether all nodes have the module, or clients may read from some that have not: then their own envelopes are not
/// wrapped, so that they find one layer everywhere.
static FLEET: Setting = Setting::new(c"fleet", Kind::Choice(FLEETS), 0);

/// Bytes that dictionaries may take in memory, beyond which no more are learned; 0 for none.
static DICTIONARY_MEMORY: Setting =
    Setting::new(c"dictionary-memory", Kind::Number(0, 1 << 30, MEMORY), 16 << 20);

/// Whether dictionaries are written to keys, too, where clients find them that read from nodes without the module.
static PUBLISH_DICTIONARIES: Setting = Setting::new(c"publish-dictionaries", Kind::Choice(SWITCH), 0);

static SETTINGS: [&Setting; 9] = [
    &COMPRESSION,
    &CODEC,
    &LEVEL,
    &MIN_BYTES,
    &BACKGROUND_CPU,
    &COLD_AFTER,
    &FLEET,
    &DICTIONARY_MEMORY,
    &PUBLISH_DICTIONARIES,
];

/// Whether new strings are compressed, unless a setting says that none are.
static COMPRESSES_NEW: AtomicBool = AtomicBool::new(true);

/// Lets new strings be compressed as the settings say, or stored as they are.
pub fn compress_new(compresses: bool) {
    COMPRESSES_NEW.store(compresses, Ordering::Relaxed);
    // The settings were valid when they were set.
    let _ = take_effect();
}

/// Goes up with every change of a setting.
static CHANGES: AtomicU64 = AtomicU64::new(0);

/// Number of changes since the module was loaded.
pub fn changes() -> u64 {
    CHANGES.load(Ordering::Relaxed)
}

/// Whether strings are compressed.
pub fn compresses() -> bool {
    COMPRESSION.get() == YES
}

/// Whether it is observed what would be saved if they were.
pub fn observes() -> bool {
    COMPRESSION.get() == OBSERVE
}

/// Share of a processor for compressing strings that are there, in percent.
pub fn background_cpu_percent() -> u32 {
    BACKGROUND_CPU.get() as u32
}

/// Whether nodes without the module may have the same keys.
pub fn is_mixed() -> bool {
    FLEET.get() == MIXED
}

/// Bytes that dictionaries may take in memory.
pub fn dictionary_memory() -> usize {
    DICTIONARY_MEMORY.get() as usize
}

/// Whether dictionaries are written to keys, too.
pub fn publishes_dictionaries() -> bool {
    PUBLISH_DICTIONARIES.get() == YES
}

/// Whether new strings may be compressed with dictionaries: not while nodes without the module, or clients that know only
/// Valkey GLIDE's envelopes, read the same keys.
pub fn uses_dictionaries() -> bool {
    dictionary_memory() > 0 && !is_mixed() && COMPRESSES_NEW.load(Ordering::Relaxed)
}

/// Whether new strings are compressed: otherwise only clients' own envelopes are wrapped.
pub fn compresses_new() -> bool {
    compresses() && COMPRESSES_NEW.load(Ordering::Relaxed)
}

/// Treatment of clients' own envelopes.
pub fn existing_envelopes() -> ExistingEnvelopes {
    if is_mixed() { ExistingEnvelopes::Keep } else { ExistingEnvelopes::Wrap }
}

/// Codec, level and threshold of new strings.
pub fn choice() -> Choice {
    // The settings were valid when they were set.
    chosen().unwrap_or(Choice::none())
}

fn chosen() -> Result<Choice, String> {
    let level = i32::try_from(LEVEL.get()).ok().filter(|&level| level != 0);
    let name = CODECS[CODEC.get() as usize].to_str().expect("names are ASCII");
    Choice::new(name, level, MIN_BYTES.get() as usize).map_err(|error| error.to_string())
}

/// Time without use after which a string is compressed once more.
pub fn cold_after() -> Option<Duration> {
    let seconds = COLD_AFTER.get() as u64;
    (seconds > 0).then(|| Duration::from_secs(seconds))
}

impl Setting {
    const fn new(name: &'static CStr, kind: Kind, default: i64) -> Setting {
        Setting { name, kind, default, value: AtomicI64::new(default) }
    }

    fn get(&self) -> i64 {
        self.value.load(Ordering::Relaxed)
    }

    /// Registers the setting, which has its default then.
    fn register(&'static self, context: Context) -> bool {
        self.value.store(self.default, Ordering::Relaxed);
        let this = ptr::from_ref(self).cast_mut().cast::<c_void>();
        let (raw, name, default) = (context.raw(), self.name.as_ptr(), self.default);
        // SAFETY: the context lives; the setting and its names live as long as the program, and the functions take what
        // `this` points to.
        let registered = unsafe {
            match self.kind {
                Kind::Choice(names) => {
                    let mut texts: Vec<_> = names.iter().map(|name| name.as_ptr()).collect();
                    let numbers: Vec<_> = (0..names.len() as c_int).collect();
                    (functions().RegisterEnumConfig)(
                        raw,
                        name,
                        default as c_int,
                        0,
                        texts.as_mut_ptr(),
                        numbers.as_ptr(),
                        names.len() as c_int,
                        get_choice,
                        set_choice,
                        Some(apply),
                        this,
                    )
                }
                Kind::Number(least, most, flags) => (functions().RegisterNumericConfig)(
                    raw,
                    name,
                    default,
                    flags,
                    least,
                    most,
                    get_number,
                    set_number,
                    Some(apply),
                    this,
                ),
            }
        };
        registered == table::OK
    }
}

/// Registers all settings and takes what the server's configuration says of them.
pub fn register(context: Context) -> bool {
    // SAFETY: the context lives.
    SETTINGS.iter().all(|setting| setting.register(context))
        && unsafe { (functions().LoadConfigs)(context.raw()) } == table::OK
        && take_effect().is_ok()
}

/// Lets whoever follows the settings see that they have changed.
///
/// # Errors
/// A text that says which of them do not go together.
fn take_effect() -> Result<(), String> {
    chosen()?;
    CHANGES.fetch_add(1, Ordering::Relaxed);
    Ok(())
}

/// The setting that a callback was registered with.
///
/// # Safety
/// `this` is what [`Setting::register`] has given the server.
unsafe fn setting(this: *mut c_void) -> &'static Setting {
    // SAFETY: as demanded of the caller; settings are statics.
    unsafe { &*this.cast::<Setting>() }
}

unsafe extern "C" fn get_number(_name: *const c_char, this: *mut c_void) -> c_longlong {
    // SAFETY: the server gives back what it was given.
    unsafe { setting(this) }.get()
}

unsafe extern "C" fn get_choice(_name: *const c_char, this: *mut c_void) -> c_int {
    // SAFETY: the server gives back what it was given.
    unsafe { setting(this) }.get() as c_int
}

unsafe extern "C" fn set_number(
    _name: *const c_char,
    value: c_longlong,
    this: *mut c_void,
    _: *mut *mut Str,
) -> c_int {
    // SAFETY: the server gives back what it was given.
    unsafe { setting(this) }.value.store(value, Ordering::Relaxed);
    table::OK
}

unsafe extern "C" fn set_choice(
    _name: *const c_char,
    value: c_int,
    this: *mut c_void,
    _: *mut *mut Str,
) -> c_int {
    // SAFETY: the server gives back what it was given.
    unsafe { setting(this) }.value.store(value.into(), Ordering::Relaxed);
    table::OK
}

/// Lets changed settings take effect, or says why they cannot, whereupon the server takes them back.
unsafe extern "C" fn apply(_context: *mut Ctx, _this: *mut c_void, error: *mut *mut Str) -> c_int {
    match guard::guarded(take_effect) {
        Some(Ok(())) => table::OK,
        Some(Err(text)) => {
            // SAFETY: the server takes over the text, and frees it.
            unsafe { *error = OwnedText::new(text.as_bytes()).into_raw() };
            table::ERR
        }
        None => table::ERR,
    }
}
