//! What the server hands to a command of the module, or lets it keep.

use std::cell::Cell;
use std::ffi::{CStr, CString, c_long, c_longlong};
use std::{ptr, slice};

use super::reply::CallReply;
use super::table::{self, ClientInfo, Ctx, User, functions};
use super::text::{OwnedText, Text};

/// The server as seen by a command that runs, or by the module itself.
#[derive(Clone, Copy)]
pub struct Context(*mut Ctx);

/// A client's user.
pub struct Caller(*mut User);

thread_local! {
    static IS_OWN_CALL: Cell<bool> = const { Cell::new(false) };
}

impl Context {
    /// The context behind this pointer.
    ///
    /// # Safety
    /// The server has handed it to the module, and it is not used for longer than the server keeps it.
    pub unsafe fn from_raw(raw: *mut Ctx) -> Context {
        Context(raw)
    }

    /// A context that the module may keep: commands that it calls and keys that it opens are nobody's.
    pub fn detached(self) -> Context {
        // SAFETY: the context lives; what it hands out lives until the module is unloaded.
        Context(unsafe { (functions().GetDetachedThreadSafeContext)(self.0) })
    }

    /// The pointer to it.
    pub fn raw(self) -> *mut Ctx {
        self.0
    }

    /// Whether the command runs in a transaction.
    pub fn is_in_transaction(self) -> bool {
        self.has(table::CONTEXT_MULTI)
    }

    /// Whether the command runs in a script.
    pub fn is_in_script(self) -> bool {
        self.has(table::CONTEXT_LUA)
    }

    /// Whether the command comes from a primary, a node that slots are taken over from, or the server's own file.
    pub fn must_obey(self) -> bool {
        // SAFETY: the context lives.
        unsafe { (functions().MustObeyClient)(self.0) != 0 }
    }

    /// Whether a child process shares the memory.
    pub fn has_child(self) -> bool {
        self.has(table::CONTEXT_ACTIVE_CHILD)
    }

    /// Whether a data set is being loaded.
    pub fn is_loading(self) -> bool {
        self.has(table::CONTEXT_LOADING | table::CONTEXT_ASYNC_LOADING)
    }

    /// Whether replicas and files may be told something: not while writes are paused, for a failover perhaps. The server ends if
    /// they are.
    pub fn may_tell(self) -> bool {
        // SAFETY: takes nothing.
        unsafe { (functions().AvoidReplicaTraffic)() == 0 }
    }

    /// A field of a section of INFO.
    pub fn info(self, section: &str, field: &str) -> Option<String> {
        let section = OwnedText::new(section.as_bytes());
        let reply = self.call(c"INFO", c"Ev", &[section.as_text().raw()])?;
        let text = String::from_utf8_lossy(reply.string()?).into_owned();
        let value = text.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
        value.map(str::to_string)
    }

    /// Calls a function once, so many milliseconds from now. Returns the identity of the call.
    pub fn call_later(self, milliseconds: u32, function: table::TimerFunction) -> u64 {
        // SAFETY: the context and the function live; the function takes no data.
        unsafe { (functions().CreateTimer)(self.0, milliseconds.into(), function, ptr::null_mut()) }
    }

    /// Takes back a call that has not been made yet.
    pub fn do_not_call(self, call: u64) {
        // SAFETY: the context lives; of a call that there is not the server says so.
        unsafe { (functions().StopTimer)(self.0, call, ptr::null_mut()) };
    }

    fn has(self, flag: i32) -> bool {
        // SAFETY: the context lives.
        unsafe { (functions().GetContextFlags)(self.0) & flag != 0 }
    }

    /// Selects the database that keys are opened in; returns whether there is such a database.
    pub fn select(self, database: u32) -> bool {
        // SAFETY: the context lives.
        unsafe { (functions().SelectDb)(self.0, database as i32) == table::OK }
    }

    /// Whether the server is a node of a cluster.
    pub fn is_in_cluster(self) -> bool {
        self.has(table::CONTEXT_CLUSTER)
    }

    /// Whether the server is a replica.
    pub fn is_replica(self) -> bool {
        self.has(table::CONTEXT_REPLICA)
    }

    /// The database that keys are opened in.
    pub fn database(self) -> u16 {
        // SAFETY: the context lives.
        unsafe { (functions().GetSelectedDb)(self.0) as u16 }
    }

    /// The database that a client has selected; `None` if there is no client of this identity.
    pub fn database_of(client: u64) -> Option<u16> {
        let mut info = ClientInfo { version: 1, flags: 0, id: 0, address: [0; 46], port: 0, database: 0 };
        // SAFETY: the structure is that of its version.
        let found = unsafe { (functions().GetClientInfoById)(&mut info, client) == table::OK };
        found.then_some(info.database)
    }

    /// Name of a client's user.
    pub fn user_of(self, client: u64) -> Option<OwnedText> {
        // SAFETY: the context lives, and the name is the caller's.
        unsafe { OwnedText::from_raw((functions().GetClientUserNameById)(self.0, client)) }
    }

    /// Name of the user that the command runs for; `None` for the server itself, its primary and its files.
    pub fn user(self) -> Option<OwnedText> {
        // SAFETY: the context lives, and the name is the caller's.
        unsafe { OwnedText::from_raw((functions().GetCurrentUserName)(self.0)) }
    }

    /// Calls a command of the server; the format is that of `ValkeyModule_Call`, and ends with `v` for the arguments.
    pub fn call<'a>(
        self,
        name: &CStr,
        format: &CStr,
        arguments: &[*mut table::Str],
    ) -> Option<CallReply<'a>> {
        IS_OWN_CALL.set(true);
        // SAFETY: the format says that a vector of strings and its length follow; all of them live.
        let reply = unsafe {
            (functions().Call)(self.0, name.as_ptr(), format.as_ptr(), arguments.as_ptr(), arguments.len())
        };
        IS_OWN_CALL.set(false);
        // SAFETY: the reply is the caller's.
        unsafe { CallReply::from_raw(reply) }
    }

    /// Whether the command that is filtered is one that the module has called, which it asks once. What such a command leads
    /// to, as calls of other modules, is not.
    pub fn is_own_call() -> bool {
        IS_OWN_CALL.take()
    }

    /// Positions of the keys among the arguments of any command of the server.
    pub fn keys_of(self, arguments: &[*mut table::Str]) -> Vec<usize> {
        let mut len = 0;
        // SAFETY: the arguments live, and the server does not change the vector; what it returns is the caller's to free.
        unsafe {
            let found = (functions().GetCommandKeys)(
                self.0,
                arguments.as_ptr().cast_mut(),
                arguments.len() as i32,
                &mut len,
            );
            if found.is_null() {
                return Vec::new();
            }
            let positions =
                slice::from_raw_parts(found, len as usize).iter().map(|&at| at as usize).collect();
            (functions().Free)(found.cast());
            positions
        }
    }

    /// Sends replicas and the append-only file a command, in the place of the one that runs.
    pub fn replicate(self, name: &CStr, arguments: &[*mut table::Str]) {
        // SAFETY: the format says that a vector of strings and its length follow; all of them live.
        unsafe {
            (functions().Replicate)(self.0, name.as_ptr(), c"v".as_ptr(), arguments.as_ptr(), arguments.len())
        };
    }

    /// Runs calls whose format has `C` for this user.
    pub fn act_for(self, caller: &Caller) {
        // SAFETY: both live; the caller sees to it that the user does until the command ends.
        unsafe { (functions().SetContextUser)(self.0, caller.0) };
    }

    /// Runs later calls for nobody, as at first.
    pub fn act_for_nobody(self) {
        // SAFETY: the context lives.
        unsafe { (functions().SetContextUser)(self.0, ptr::null()) };
    }

    /// Replies with a string.
    pub fn reply(self, bytes: &[u8]) {
        // SAFETY: the context lives, and the server copies the bytes.
        unsafe { (functions().ReplyWithStringBuffer)(self.0, bytes.as_ptr().cast(), bytes.len()) };
    }

    /// Replies with a status.
    pub fn reply_status(self, text: &CStr) {
        // SAFETY: the context lives, and the server copies the text.
        unsafe { (functions().ReplyWithSimpleString)(self.0, text.as_ptr()) };
    }

    /// Replies that there is nothing.
    pub fn reply_null(self) {
        // SAFETY: the context lives.
        unsafe { (functions().ReplyWithNull)(self.0) };
    }

    /// Replies with a number.
    pub fn reply_number(self, number: usize) {
        // SAFETY: the context lives.
        unsafe { (functions().ReplyWithLongLong)(self.0, number as c_longlong) };
    }

    /// Begins a reply of so many names and values; an array of both in RESP2.
    pub fn reply_map(self, len: usize) {
        // SAFETY: the context lives.
        unsafe { (functions().ReplyWithMap)(self.0, len as c_long) };
    }

    /// Begins a reply of so many elements.
    pub fn reply_array(self, len: usize) {
        // SAFETY: the context lives.
        unsafe { (functions().ReplyWithArray)(self.0, len as c_long) };
    }

    /// Replies with what a called command has replied.
    pub fn reply_as(self, reply: &CallReply<'_>) {
        // SAFETY: both live.
        unsafe { (functions().ReplyWithCallReply)(self.0, reply.raw()) };
    }

    /// Replies with an error; its first word is its kind.
    pub fn reply_error(self, text: &str) {
        // An error is one line, and ends with a zero.
        let line = text.replace(['\0', '\r', '\n'], " ");
        let line = CString::new(line).expect("zeros are replaced");
        // SAFETY: the context lives, and the server copies the text.
        unsafe { (functions().ReplyWithError)(self.0, line.as_ptr()) };
    }
}

impl Caller {
    /// The user of this name; `None` for one that a module has made and not named in the access list.
    pub fn named(name: Text<'_>) -> Option<Caller> {
        // SAFETY: the name lives; what is found is the caller's to free.
        let raw = unsafe { (functions().GetModuleUserFromUserName)(name.raw()) };
        (!raw.is_null()).then(|| Caller(raw))
    }

    /// The user's rights, as ACL LIST tells them.
    pub fn rules(&self) -> Option<OwnedText> {
        // SAFETY: the user lives, and the text is the caller's.
        unsafe { OwnedText::from_raw((functions().GetModuleUserACLString)(self.0)) }
    }

    /// Whether the user may run a command with these arguments, of which the first is its name, in this database.
    pub fn may_run(&self, arguments: &[*mut table::Str], database: u16) -> bool {
        let mut reason = 0;
        // SAFETY: the user and the arguments live, and the server does not change the vector.
        let checked = unsafe {
            (functions().ACLCheckPermissions)(
                self.0,
                arguments.as_ptr().cast_mut(),
                arguments.len() as i32,
                database.into(),
                &mut reason,
            )
        };
        checked == table::OK
    }
}

impl Drop for Caller {
    fn drop(&mut self) {
        // SAFETY: this is the owner. Only what refers to the user is freed.
        unsafe { (functions().FreeModuleUser)(self.0) }
    }
}
