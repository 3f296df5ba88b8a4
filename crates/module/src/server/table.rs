//! The server's functions, found by name when the module is loaded, with the types of `valkeymodule.h`.
//!
//! They are declared here and not taken from a library of bindings: those generate theirs with libclang, which
//! nobody else who builds this needs, and let a panic in a callback end the server.

use std::ffi::{CStr, c_char, c_int, c_longlong, c_uchar, c_uint, c_ulonglong, c_void};
use std::mem;
use std::ptr;
use std::sync::OnceLock;

/// Types that only the server knows from inside.
macro_rules! opaque {
    ($($name:ident),*) => { $(#[repr(C)] pub struct $name { _private: [u8; 0] })* };
}
opaque!(Ctx, Str, Key, CallReply, FilterCtx, Filter, InfoCtx, Command, User, ScanCursor);

/// `ValkeyModuleEvent`: an event and the version of what comes with it.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Event {
    pub id: u64,
    pub version: u64,
}

/// `ValkeyModuleClientInfoV1`.
#[repr(C)]
pub struct ClientInfo {
    pub version: u64,
    pub flags: u64,
    pub id: u64,
    pub address: [c_char; 46],
    pub port: u16,
    pub database: u16,
}

/// `ValkeyModuleCommandInfoVersion`: sizes of the structures below.
#[repr(C)]
pub struct CommandInfoVersion {
    pub version: c_int,
    pub history_entry: usize,
    pub key_spec: usize,
    pub argument: usize,
}

/// `ValkeyModuleCommandKeySpec` whose keys begin at an index and end at one.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct KeySpec {
    pub notes: *const c_char,
    pub flags: u64,
    pub begin_search: c_uint,
    pub begin: KeySpecBegin,
    pub find_keys: c_uint,
    pub last: c_int,
    pub step: c_int,
    pub limit: c_int,
}

/// The union of what a search for keys begins with, of which an index is used here.
#[repr(C)]
#[derive(Clone, Copy)]
pub union KeySpecBegin {
    pub index: c_int,
    pub keyword: Keyword,
}

/// A word that keys begin behind.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Keyword {
    pub word: *const c_char,
    pub start: c_int,
}

/// `ValkeyModuleCommandInfo`.
#[repr(C)]
pub struct CommandInfo {
    pub version: *const CommandInfoVersion,
    pub summary: *const c_char,
    pub complexity: *const c_char,
    pub since: *const c_char,
    pub history: *const c_void,
    pub tips: *const c_char,
    pub arity: c_int,
    pub key_specs: *const KeySpec,
    pub arguments: *const c_void,
}

pub type CommandFunction = unsafe extern "C" fn(*mut Ctx, *mut *mut Str, c_int) -> c_int;
pub type FilterFunction = unsafe extern "C" fn(*mut FilterCtx);
pub type EventFunction = unsafe extern "C" fn(*mut Ctx, Event, u64, *mut c_void);
pub type TimerFunction = unsafe extern "C" fn(*mut Ctx, *mut c_void);
pub type ScanFunction = unsafe extern "C" fn(*mut Ctx, *mut Str, *mut Key, *mut c_void);
pub type ClusterMessageFunction =
    unsafe extern "C" fn(*mut Ctx, *const c_char, c_uchar, *const c_uchar, c_uint);
pub type InfoFunction = unsafe extern "C" fn(*mut InfoCtx, c_int);
pub type GetNumber = unsafe extern "C" fn(*const c_char, *mut c_void) -> c_longlong;
pub type SetNumber = unsafe extern "C" fn(*const c_char, c_longlong, *mut c_void, *mut *mut Str) -> c_int;
pub type GetChoice = unsafe extern "C" fn(*const c_char, *mut c_void) -> c_int;
pub type SetChoice = unsafe extern "C" fn(*const c_char, c_int, *mut c_void, *mut *mut Str) -> c_int;
pub type Apply = unsafe extern "C" fn(*mut Ctx, *mut c_void, *mut *mut Str) -> c_int;
type GetApi = unsafe extern "C" fn(*const c_char, *mut *mut c_void) -> c_int;

/// Declares [`Functions`], one field for a function, and how they are found.
macro_rules! functions {
    ($($name:ident: $type:ty;)*) => {
        /// Functions of the server, by their names without `ValkeyModule_`.
        #[allow(non_snake_case, reason = "the server's own names")]
        pub struct Functions { $(pub $name: $type,)* }

        impl Functions {
            /// Finds all functions, or names one that this server does not have.
            ///
            /// # Safety
            /// `context` is what the server has handed to `ValkeyModule_OnLoad`.
            unsafe fn find(context: *mut Ctx) -> Result<Functions, &'static str> {
                // SAFETY: a context begins with the pointer to GetApi (valkeymodule.h, ValkeyModule_Init).
                let get = unsafe { *context.cast::<GetApi>() };
                Ok(Functions { $($name: {
                    let name = concat!("ValkeyModule_", stringify!($name), "\0");
                    let mut found: *mut c_void = ptr::null_mut();
                    // SAFETY: the name ends with a zero, and `found` is written or left as it is.
                    let missing = unsafe { get(name.as_ptr().cast(), &mut found) } != OK || found.is_null();
                    if missing {
                        return Err(stringify!($name));
                    }
                    // SAFETY: the server's function of this name has this type, by its header.
                    unsafe { mem::transmute_copy::<*mut c_void, $type>(&found) }
                },)* })
            }
        }
    };
}

functions! {
    SetModuleAttribs: unsafe extern "C" fn(*mut Ctx, *const c_char, c_int, c_int);
    IsModuleNameBusy: unsafe extern "C" fn(*const c_char) -> c_int;
    SetModuleOptions: unsafe extern "C" fn(*mut Ctx, c_int);
    GetServerVersion: unsafe extern "C" fn() -> c_int;
    Log: unsafe extern "C" fn(*mut Ctx, *const c_char, *const c_char, ...);
    CreateCommand: unsafe extern "C" fn(*mut Ctx, *const c_char, CommandFunction, *const c_char, c_int, c_int, c_int) -> c_int;
    GetCommand: unsafe extern "C" fn(*mut Ctx, *const c_char) -> *mut Command;
    SetCommandACLCategories: unsafe extern "C" fn(*mut Command, *const c_char) -> c_int;
    SetCommandInfo: unsafe extern "C" fn(*mut Command, *const CommandInfo) -> c_int;
    RegisterCommandFilter: unsafe extern "C" fn(*mut Ctx, FilterFunction, c_int) -> *mut Filter;
    CommandFilterArgsCount: unsafe extern "C" fn(*mut FilterCtx) -> c_int;
    CommandFilterArgGet: unsafe extern "C" fn(*mut FilterCtx, c_int) -> *mut Str;
    CommandFilterArgReplace: unsafe extern "C" fn(*mut FilterCtx, c_int, *mut Str) -> c_int;
    CommandFilterGetClientId: unsafe extern "C" fn(*mut FilterCtx) -> c_ulonglong;
    SubscribeToServerEvent: unsafe extern "C" fn(*mut Ctx, Event, EventFunction) -> c_int;
    GetDetachedThreadSafeContext: unsafe extern "C" fn(*mut Ctx) -> *mut Ctx;
    GetContextFlags: unsafe extern "C" fn(*mut Ctx) -> c_int;
    SelectDb: unsafe extern "C" fn(*mut Ctx, c_int) -> c_int;
    GetClientInfoById: unsafe extern "C" fn(*mut ClientInfo, u64) -> c_int;
    GetClientUserNameById: unsafe extern "C" fn(*mut Ctx, u64) -> *mut Str;
    GetCurrentUserName: unsafe extern "C" fn(*mut Ctx) -> *mut Str;
    GetModuleUserFromUserName: unsafe extern "C" fn(*mut Str) -> *mut User;
    GetModuleUserACLString: unsafe extern "C" fn(*mut User) -> *mut Str;
    FreeModuleUser: unsafe extern "C" fn(*mut User);
    SetContextUser: unsafe extern "C" fn(*mut Ctx, *const User);
    ACLCheckPermissions: unsafe extern "C" fn(*mut User, *mut *mut Str, c_int, c_int, *mut c_int) -> c_int;
    AvoidReplicaTraffic: unsafe extern "C" fn() -> c_int;
    MustObeyClient: unsafe extern "C" fn(*mut Ctx) -> c_int;
    GetSelectedDb: unsafe extern "C" fn(*mut Ctx) -> c_int;
    Replicate: unsafe extern "C" fn(*mut Ctx, *const c_char, *const c_char, ...) -> c_int;
    CreateTimer: unsafe extern "C" fn(*mut Ctx, c_longlong, TimerFunction, *mut c_void) -> u64;
    StopTimer: unsafe extern "C" fn(*mut Ctx, u64, *mut *mut c_void) -> c_int;
    ScanCursorCreate: unsafe extern "C" fn() -> *mut ScanCursor;
    ScanCursorDestroy: unsafe extern "C" fn(*mut ScanCursor);
    ScanCursorRestart: unsafe extern "C" fn(*mut ScanCursor);
    Scan: unsafe extern "C" fn(*mut Ctx, *mut ScanCursor, ScanFunction, *mut c_void) -> c_int;
    GetLRU: unsafe extern "C" fn(*mut Key, *mut c_longlong) -> c_int;
    GetCommandKeys: unsafe extern "C" fn(*mut Ctx, *mut *mut Str, c_int, *mut c_int) -> *mut c_int;
    Free: unsafe extern "C" fn(*mut c_void);
    GetClusterNodesList: unsafe extern "C" fn(*mut Ctx, *mut usize) -> *mut *mut c_char;
    FreeClusterNodesList: unsafe extern "C" fn(*mut *mut c_char);
    GetClusterNodeInfo: unsafe extern "C" fn(*mut Ctx, *const c_char, *mut c_char, *mut c_char, *mut c_int, *mut c_int) -> c_int;
    SendClusterMessage: unsafe extern "C" fn(*mut Ctx, *const c_char, c_uchar, *const c_char, c_uint) -> c_int;
    RegisterClusterMessageReceiver: unsafe extern "C" fn(*mut Ctx, c_uchar, Option<ClusterMessageFunction>);
    ClusterKeySlot: unsafe extern "C" fn(*mut Str) -> c_uint;
    CreateString: unsafe extern "C" fn(*mut Ctx, *const c_char, usize) -> *mut Str;
    HoldString: unsafe extern "C" fn(*mut Ctx, *mut Str) -> *mut Str;
    FreeString: unsafe extern "C" fn(*mut Ctx, *mut Str);
    StringPtrLen: unsafe extern "C" fn(*const Str, *mut usize) -> *const c_char;
    OpenKey: unsafe extern "C" fn(*mut Ctx, *mut Str, c_int) -> *mut Key;
    CloseKey: unsafe extern "C" fn(*mut Key);
    KeyType: unsafe extern "C" fn(*mut Key) -> c_int;
    ValueLength: unsafe extern "C" fn(*mut Key) -> usize;
    StringDMA: unsafe extern "C" fn(*mut Key, *mut usize, c_int) -> *mut c_char;
    StringTruncate: unsafe extern "C" fn(*mut Key, usize) -> c_int;
    Call: unsafe extern "C" fn(*mut Ctx, *const c_char, *const c_char, ...) -> *mut CallReply;
    FreeCallReply: unsafe extern "C" fn(*mut CallReply);
    CallReplyType: unsafe extern "C" fn(*mut CallReply) -> c_int;
    CallReplyLength: unsafe extern "C" fn(*mut CallReply) -> usize;
    CallReplyStringPtr: unsafe extern "C" fn(*mut CallReply, *mut usize) -> *const c_char;
    CallReplyArrayElement: unsafe extern "C" fn(*mut CallReply, usize) -> *mut CallReply;
    ReplyWithStringBuffer: unsafe extern "C" fn(*mut Ctx, *const c_char, usize) -> c_int;
    ReplyWithSimpleString: unsafe extern "C" fn(*mut Ctx, *const c_char) -> c_int;
    ReplyWithNull: unsafe extern "C" fn(*mut Ctx) -> c_int;
    ReplyWithMap: unsafe extern "C" fn(*mut Ctx, std::ffi::c_long) -> c_int;
    ReplyWithArray: unsafe extern "C" fn(*mut Ctx, std::ffi::c_long) -> c_int;
    ReplyWithLongLong: unsafe extern "C" fn(*mut Ctx, c_longlong) -> c_int;
    ReplyWithError: unsafe extern "C" fn(*mut Ctx, *const c_char) -> c_int;
    ReplyWithCallReply: unsafe extern "C" fn(*mut Ctx, *mut CallReply) -> c_int;
    RegisterNumericConfig: unsafe extern "C" fn(
        *mut Ctx, *const c_char, c_longlong, c_uint, c_longlong, c_longlong, GetNumber, SetNumber, Option<Apply>, *mut c_void,
    ) -> c_int;
    RegisterEnumConfig: unsafe extern "C" fn(
        *mut Ctx, *const c_char, c_int, c_uint, *mut *const c_char, *const c_int, c_int, GetChoice, SetChoice, Option<Apply>,
        *mut c_void,
    ) -> c_int;
    LoadConfigs: unsafe extern "C" fn(*mut Ctx) -> c_int;
    RegisterInfoFunc: unsafe extern "C" fn(*mut Ctx, InfoFunction) -> c_int;
    InfoAddSection: unsafe extern "C" fn(*mut InfoCtx, *const c_char) -> c_int;
    InfoAddFieldULongLong: unsafe extern "C" fn(*mut InfoCtx, *const c_char, c_ulonglong) -> c_int;
    InfoAddFieldCString: unsafe extern "C" fn(*mut InfoCtx, *const c_char, *const c_char) -> c_int;
}

/// `VALKEYMODULE_OK`, and the other one.
pub const OK: c_int = 0;
pub const ERR: c_int = 1;
pub const API_VERSION: c_int = 1;
/// The module tells watching and tracking clients of a change by itself, where there is one.
pub const OPTION_NO_IMPLICIT_SIGNAL_MODIFIED: c_int = 1 << 1;
/// Values may be moved to another node in commands: the module stores nothing beside them.
pub const OPTION_HANDLE_ATOMIC_SLOT_MIGRATION: c_int = 1 << 5;
pub const READ: c_int = 1 << 0;
pub const WRITE: c_int = 1 << 1;
pub const NO_EFFECTS: c_int = 1 << 20;
pub const NO_TOUCH: c_int = 1 << 16;
pub const NO_NOTIFY: c_int = 1 << 17;
pub const NO_STATS: c_int = 1 << 18;
pub const NO_EXPIRE: c_int = 1 << 19;
pub const KEY_TYPE_STRING: c_int = 1;
pub const KEY_TYPE_LIST: c_int = 2;
pub const KEY_TYPE_SET: c_int = 4;
pub const KEY_TYPE_SORTED_SET: c_int = 5;
pub const REPLY_STRING: c_int = 0;
pub const REPLY_ERROR: c_int = 1;
pub const REPLY_ARRAY: c_int = 3;
pub const CONTEXT_LUA: c_int = 1 << 0;
pub const CONTEXT_MULTI: c_int = 1 << 1;
pub const CONTEXT_REPLICA: c_int = 1 << 3;
pub const CONTEXT_CLUSTER: c_int = 1 << 5;
pub const CONTEXT_LOADING: c_int = 1 << 13;
pub const CONTEXT_ACTIVE_CHILD: c_int = 1 << 18;
pub const CONTEXT_ASYNC_LOADING: c_int = 1 << 23;
pub const EVENT_LOADING: Event = Event { id: 3, version: 1 };
pub const EVENT_ASYNC_LOADING: Event = Event { id: 14, version: 1 };
pub const EVENT_CLIENT_CHANGE: Event = Event { id: 4, version: 1 };
pub const EVENT_CRON_LOOP: Event = Event { id: 8, version: 1 };
pub const EVENT_MODULE_CHANGE: Event = Event { id: 9, version: 1 };
pub const CLIENT_CONNECTED: u64 = 0;
pub const CLIENT_DISCONNECTED: u64 = 1;
pub const NODE_MYSELF: c_int = 1 << 0;
pub const NODE_PRIMARY: c_int = 1 << 1;
pub const NODE_PFAIL: c_int = 1 << 3;
pub const NODE_FAIL: c_int = 1 << 4;
pub const KEY_READ_ONLY: u64 = 1 << 0;
pub const KEY_READ_WRITE: u64 = 1 << 1;
pub const KEY_OVERWRITE: u64 = 1 << 2;
pub const KEY_ACCESS: u64 = 1 << 4;
pub const KEY_UPDATE: u64 = 1 << 5;
pub const BEGIN_AT_INDEX: c_uint = 2;
pub const BEGIN_AT_KEYWORD: c_uint = 3;
pub const FIND_RANGE: c_uint = 2;

static FUNCTIONS: OnceLock<Functions> = OnceLock::new();

/// Finds the server's functions, once.
///
/// # Errors
/// The name of a function that this server does not have.
///
/// # Safety
/// `context` is what the server has handed to `ValkeyModule_OnLoad`.
pub unsafe fn find(context: *mut Ctx) -> Result<&'static Functions, &'static str> {
    // SAFETY: as demanded of the caller.
    let found = unsafe { Functions::find(context) }?;
    Ok(FUNCTIONS.get_or_init(|| found))
}

/// The server's functions. The module runs no code before it has found them.
#[inline]
pub fn functions() -> &'static Functions {
    FUNCTIONS.get().expect("the module is loaded")
}

/// Writes a line to the server's log.
pub fn log(context: *mut Ctx, level: &CStr, text: &CStr) {
    // SAFETY: the format takes one text, and all three end with a zero.
    unsafe { (functions().Log)(context, level.as_ptr(), c"%s".as_ptr(), text.as_ptr()) }
}
