use snugly_protocol::resp::ArgsBuffer;

use super::*;

/// A server that knows a few commands.
#[derive(Default)]
struct Commands {
    reply: Vec<u8>,
    log: Vec<(u8, Vec<u8>)>,
    /// Number of questions after which the script is killed.
    patience: Option<u32>,
}

impl Host for Commands {
    fn call(&mut self, request: Args<'_>, protocol: Protocol) -> &[u8] {
        let mut replies = ReplyBuffer::new(protocol);
        match &request[0] {
            b"ECHO" => replies.bulk(&request[1]),
            b"NULL" => replies.null(),
            b"COUNT" => replies.integer(request.len() as i64),
            b"OK" => replies.simple("OK"),
            b"DOUBLE" => replies.double(0.5),
            b"TRUE" => replies.boolean(true),
            b"BIG" => replies.big_number("12345678901234567890"),
            b"TEXT" => replies.verbatim(b"txt", b"text"),
            b"MAP" => {
                replies.map(1);
                replies.bulk(b"key");
                replies.integer(1);
            }
            b"SET" => {
                replies.set(1);
                replies.bulk(b"member");
            }
            b"ARRAY" => {
                replies.array(2);
                replies.bulk(b"a");
                replies.array(0);
            }
            _ => replies.error("WRONG no such thing"),
        }
        self.reply = replies.as_bytes().to_vec();
        &self.reply
    }

    fn may_run(&mut self, request: Args<'_>) -> Option<bool> {
        (&request[0] != b"UNKNOWN").then_some(&request[0] == b"ECHO")
    }

    fn log(&mut self, level: u8, message: &[u8]) {
        self.log.push((level, message.to_vec()));
    }

    fn kind(&self) -> &'static str {
        "SCRIPT"
    }

    fn is_killed(&mut self) -> bool {
        let Some(patience) = &mut self.patience else { return false };
        *patience = patience.saturating_sub(1);
        *patience == 0
    }
}

const MEMORY: usize = 16 << 20;

fn engine() -> Engine {
    Engine::new(MEMORY).expect("there is memory")
}

fn words(words: &[&str]) -> ArgsBuffer {
    let mut buffer = ArgsBuffer::default();
    words.iter().for_each(|word| buffer.push(word.as_bytes()));
    buffer
}

/// The reply of a script, errors as they are sent.
fn reply_of(engine: &mut Engine, host: &mut Commands, protocol: Protocol, code: &str) -> String {
    let mut replies = ReplyBuffer::new(protocol);
    let script = match engine.compile(code.as_bytes()) {
        Ok(script) => script,
        Err(error) => return error.to_string(),
    };
    let (keys, arguments) = (words(&["k1", "k2"]), words(&["a1"]));
    if let Err(failure) = engine.run(&script, keys.args(), arguments.args(), host, &mut replies) {
        replies.error(failure.text);
    }
    replies.as_bytes().escape_ascii().to_string()
}

fn eval(code: &str) -> String {
    reply_of(&mut engine(), &mut Commands::default(), Protocol::Resp2, code)
}

#[track_caller]
fn check(cases: &[(&str, &str)]) {
    let mut engine = engine();
    for (code, expected) in cases {
        let reply = reply_of(&mut engine, &mut Commands::default(), Protocol::Resp2, code);
        assert_eq!(reply, *expected, "{code}");
    }
}

#[test]
fn values_become_replies_as_in_valkey() {
    check(&[
        (
            "return {1, 2.9, -2.9, 'a', true, false, {ok='x'}, {err='E y'}}",
            r"*8\r\n:1\r\n:2\r\n:-2\r\n$1\r\na\r\n:1\r\n$-1\r\n+x\r\n-E y\r\n",
        ),
        ("return", r"$-1\r\n"),
        ("return {1,nil,3}", r"*1\r\n:1\r\n"),
        ("return {double=3.5}", r"$3\r\n3.5\r\n"),
        ("return {map={a=1}}", r"*2\r\n$1\r\na\r\n:1\r\n"),
        ("return {set={a=true}}", r"*1\r\n$1\r\na\r\n"),
        ("return {big_number='12\\r\\n3'}", r"$5\r\n12  3\r\n"),
        ("return {verbatim_string={format='txt', string='hi'}}", r"$2\r\nhi\r\n"),
        ("return 1e30", r":-9223372036854775808\r\n"),
        ("return {err='a\\r\\nb'}", r"-a  b\r\n"),
        ("server.setresp(3) return false", r":0\r\n"),
        ("return {KEYS[1], KEYS[2], KEYS[3], ARGV[1]}", r"*2\r\n$2\r\nk1\r\n$2\r\nk2\r\n"),
        ("return function() end", r"$-1\r\n"),
    ]);
    let in_resp3 = |code| reply_of(&mut engine(), &mut Commands::default(), Protocol::Resp3, code);
    assert_eq!(in_resp3("return {true, {double=1}}"), r"*2\r\n:1\r\n,1\r\n");
    assert_eq!(in_resp3("server.setresp(3) return {true, {map={}}, {set={}}}"), r"*3\r\n#t\r\n%0\r\n~0\r\n");
}

#[test]
fn replies_become_values_as_in_valkey() {
    check(&[
        ("return redis.call('ECHO', 'x')", r"$1\r\nx\r\n"),
        ("return redis.call('NULL') == false", r":1\r\n"),
        ("redis.setresp(3) return redis.call('NULL') == nil", r":1\r\n"),
        ("return redis.call('COUNT', 1, 2.5)", r":3\r\n"),
        ("return redis.call('OK').ok", r"$2\r\nOK\r\n"),
        ("return redis.call('DOUBLE')", r"$3\r\n0.5\r\n"),
        ("redis.setresp(3) return redis.call('DOUBLE').double * 2", r":1\r\n"),
        ("redis.setresp(3) return redis.call('TRUE') == true", r":1\r\n"),
        ("redis.setresp(3) return redis.call('BIG').big_number", r"$20\r\n12345678901234567890\r\n"),
        ("redis.setresp(3) return redis.call('TEXT').verbatim_string.format", r"$3\r\ntxt\r\n"),
        ("redis.setresp(3) return redis.call('MAP').map.key", r":1\r\n"),
        ("redis.setresp(3) return redis.call('SET').set.member", r":1\r\n"),
        ("return #redis.call('ARRAY')", r":2\r\n"),
        ("return redis.call('ECHO', 1/3)", r"$18\r\n0.3333333333333333\r\n"),
        ("return redis.call('ECHO', 2^53)", r"$16\r\n9007199254740992\r\n"),
        ("return redis.call('ECHO', 1e20)", r"$5\r\n1e+20\r\n"),
    ]);
}

#[test]
fn errors_say_what_happened_and_in_which_line() {
    check(&[
        ("return redis.call('NO')", r"-WRONG no such thing script: on @user_script:1.\r\n"),
        ("\n\nlocal x = redis.call('NO')", r"-WRONG no such thing script: on @user_script:3.\r\n"),
        ("return redis.pcall('NO')", r"-WRONG no such thing\r\n"),
        ("error('x')", r"-ERR user_script:1: x script: on @user_script:1.\r\n"),
        ("error({err='MY x'})", r"-MY x script: on @user_script:1.\r\n"),
        ("error({})", r"-ERR unknown error script: on @user_script:1.\r\n"),
        ("error()", r"-ERR nil script: on @user_script:1.\r\n"),
        (
            "return nope",
            r"-ERR user_script:1: Script attempted to access nonexistent global variable \'nope\' script: on @user_script:1.\r\n",
        ),
        (
            "return redis.call()",
            r"-ERR Please specify at least one argument for this call script: on @user_script:1.\r\n",
        ),
        (
            "return redis.call({})",
            r"-ERR Command arguments must be strings or integers script: on @user_script:1.\r\n",
        ),
        ("return redis.setresp(4)", r"-ERR RESP version must be 2 or 3. script: on @user_script:1.\r\n"),
        ("return redis.error_reply('x')", r"-ERR x\r\n"),
        ("return redis.error_reply('-X y')", r"-X y\r\n"),
        ("return redis.error_reply()", r"-ERR wrong number or type of arguments\r\n"),
        (
            "return {pcall(redis.call, 'NO')}[2]",
            "Error compiling script (new function): user_script:1: '<eof>' expected near '['",
        ),
        ("return select(2, pcall(redis.call, 'NO'))", r"$19\r\nWRONG no such thing\r\n"),
        ("return select(2, pcall(function() error('x') end))", r"$16\r\nuser_script:1: x\r\n"),
        ("return {", "Error compiling script (new function): user_script:1: unexpected symbol near '<eof>'"),
    ]);
}

#[test]
fn what_a_command_has_failed_with_was_counted_and_what_a_script_raises_was_not() {
    let failure = |code: &str| {
        let mut engine = engine();
        let script = engine.compile(code.as_bytes()).expect("it is well-formed");
        let none = ArgsBuffer::default();
        let mut replies = ReplyBuffer::default();
        let mut host = Commands::default();
        engine
            .run(&script, none.args(), none.args(), &mut host, &mut replies)
            .expect_err("it fails")
            .is_counted
    };
    assert!(failure("return redis.call('NO')") && failure("return redis.pcall('NO')"));
    assert!(!failure("error('x')") && !failure("return {err='X y'}"));
}

#[test]
fn nothing_that_scripts_share_can_be_changed() {
    const READ_ONLY: &str = "Attempt to modify a readonly table";
    for code in [
        "x = 1",
        "KEYS = 1",
        "redis = 1",
        "redis.call = 1",
        "string.len = nil",
        "_G.x = 1",
        "getmetatable('').__index = 1",
        "rawset(_G, 'x', 1)",
        "rawset(redis, 'x', 1)",
        "setmetatable(_G, {})",
        "setmetatable(string, {})",
        "table.insert(redis, 1)",
        "table.sort(redis)",
        "table.remove(redis)",
        "os.x = 1",
        "math.pi = 3",
        "cjson.x = 1",
        "getmetatable('').__index.len = 1",
        "coroutine.resume = 1",
        "table.insert = 1",
        "server.x = 1",
    ] {
        let reply = eval(code);
        assert!(reply.starts_with("-ERR") && reply.contains(READ_ONLY), "{code}: {reply}");
    }
    check(&[
        (
            "for name, value in pairs(redis) do if name == 'call' then return type(value) end end",
            r"$8\r\nfunction\r\n",
        ),
        (
            "local copy = {} for name, value in pairs(string) do copy[name] = value end copy.len = 1 return string.len('x')",
            r":1\r\n",
        ),
        ("return type(next(string))", r"$6\r\nstring\r\n"),
        ("return rawget(math, 'pi') == math.pi", r":1\r\n"),
        ("return getmetatable(redis) == nil", r":1\r\n"),
        ("return ('x'):rep(3)", r"$3\r\nxxx\r\n"),
        ("KEYS[1] = 'x' return KEYS[1]", r"$1\r\nx\r\n"),
        ("return KEYS[1]", r"$2\r\nk1\r\n"),
    ]);
}

#[test]
fn nothing_reaches_outside() {
    for name in [
        "io", "debug", "package", "require", "dofile", "loadfile", "print", "newproxy", "getfenv", "setfenv",
        "module",
    ] {
        assert!(eval(&format!("return {name}")).contains("nonexistent global variable"), "{name}");
    }
    for name in ["execute", "exit", "getenv", "remove", "rename", "tmpname", "time", "date"] {
        assert_eq!(eval(&format!("return os.{name} == nil")), r":1\r\n", "{name}");
    }
    check(&[
        ("return loadstring('return 1 + 1')()", r":2\r\n"),
        ("return load(function() return nil end) ~= nil", r":1\r\n"),
        ("return (loadstring(string.dump(function() end)))", r"$-1\r\n"),
        (
            "return select(2, loadstring('x x'))",
            r#"$39\r\n[string \"x x\"]:1: \'=\' expected near \'x\'\r\n"#,
        ),
        (
            "return loadstring('redis.x = 1')()",
            r#"-ERR [string \"redis.x = 1\"]:1: Attempt to modify a readonly table script: on redis.x = 1:1.\r\n"#,
        ),
        ("return pcall(unpack, {}, 1, 1e9)", r"$-1\r\n"),
        ("return select('#', unpack({}, 1, 7000))", r":7000\r\n"),
        ("return collectgarbage('stop')", r":0\r\n"),
        (
            "return collectgarbage('x')",
            r"-ERR user_script:1: bad argument #1 to \'collectgarbage\' (invalid option \'x\') script: on @user_script:1.\r\n",
        ),
        (
            "return ('x'):find('[a')",
            r"-ERR user_script:1: malformed pattern (missing \']\') script: on @user_script:1.\r\n",
        ),
        (
            "return pairs('x')",
            r"-ERR user_script:1: bad argument #1 to \'pairs\' (table expected, got string) script: on @user_script:1.\r\n",
        ),
    ]);
}

#[test]
fn a_killed_script_ends_whatever_it_catches() {
    for code in [
        "while true do end",
        "while true do pcall(function() while true do end end) end",
        "while true do xpcall(function() while true do end end, function(e) return e end) end",
        "while true do coroutine.resume(coroutine.create(function() while true do end end)) end",
        "while true do pcall(coroutine.wrap(function() while true do end end)) end",
        "local function again() pcall(again) return again() end while true do pcall(again) end",
        "table.sort({1, 2, 3}, function() while true do end end)",
    ] {
        let mut host = Commands { patience: Some(3), ..Commands::default() };
        let reply = reply_of(&mut engine(), &mut host, Protocol::Resp2, code);
        assert!(reply.starts_with("-ERR") && reply.contains("Script killed by user"), "{code}: {reply}");
    }
}

#[test]
fn memory_and_stack_have_bounds_and_the_next_script_runs() {
    let mut engine = engine();
    for code in [
        "return string.rep('x', 1e9)",
        "local t = {} while true do t[#t + 1] = string.rep('x', 1000) .. #t end",
        "local s = 'x' while true do s = s .. s end",
        "local function deep() return 1 + deep() end return deep()",
        "local t = {} t[1] = t return t",
        "return string.rep('x', -1):rep(1e9) .. string.format('%99999d', 1)",
        "local t = setmetatable({}, {__index = function(t, k) return t[k .. 'x'] end}) return t.x",
        "return ('x'):gsub('x', function(x) return ('y'):rep(1e9) end)",
        "local t = {} for i = 1, 1e9 do t[i] = i end",
        "return string.find(string.rep('a', 300000), string.rep('a?', 300000) .. 'b')",
        "return ('x'):gsub(string.rep('(', 30000), '')",
        "local function again() return coroutine.wrap(again)() end return again()",
        "return unpack({}, 0/0)",
        "return unpack({}, -1/0, 1/0)",
        "return unpack({}, -2^31, 2^31 - 1)",
        "return unpack({}, 2^53, 2^31 - 1)",
        "return unpack({}, 1, 2^32 + 1)",
        "return loadstring(string.rep('(', 100000))()",
    ] {
        let reply = reply_of(&mut engine, &mut Commands::default(), Protocol::Resp2, code);
        assert!(reply.starts_with("-ERR"), "{code}: {}", &reply[..reply.len().min(100)]);
        let reply = reply_of(&mut engine, &mut Commands::default(), Protocol::Resp2, "return 1");
        assert_eq!(reply, r":1\r\n", "after {code}");
    }
    assert!(engine.memory() < MEMORY / 2);
}

#[test]
fn there_is_room_for_many_results_of_a_caught_call_and_for_deep_ones() {
    check(&[
        ("return select('#', pcall(function() return unpack({}, 1, 5000) end))", r":5001\r\n"),
        ("local function f(n) return pcall(f, n + 1) end return type(f(1))", r"$7\r\nboolean\r\n"),
        ("local function f() return xpcall(f, f) end return type(f())", r"$7\r\nboolean\r\n"),
    ]);
}

#[test]
fn long_texts_that_are_no_patterns_are_found() {
    check(&[
        ("local long = ('x'):rep(5000) return (long .. 'y'):find(long)", r":1\r\n"),
        ("local long = ('.'):rep(5000) return select(2, (long .. 'y'):find(long, 1, true))", r":5000\r\n"),
        ("return ('a.b'):find('.', 1, true)", r":2\r\n"),
        ("return ('abc'):find('b')", r":2\r\n"),
        ("return (('abc'):gsub('%w', '%0%0'))", r"$6\r\naabbcc\r\n"),
        ("return ('key = value'):match('^(%w+)%s*=%s*(%w+)$')", r"$3\r\nkey\r\n"),
    ]);
}

#[test]
fn deep_tables_are_answered_without_a_deep_stack() {
    let reply = eval("local t = {} for i = 1, 6000 do t = {t} end return t");
    assert!(reply.starts_with(r"*1\r\n*1\r\n") && reply.ends_with(r"*1\r\n*0\r\n"));
}

#[test]
fn lines_for_the_log_come_with_their_level() {
    let mut host = Commands::default();
    let code = "redis.log(redis.LOG_WARNING, 'a', 'b', 1, {}) return redis.log(2, 'c')";
    assert_eq!(reply_of(&mut engine(), &mut host, Protocol::Resp2, code), r"$-1\r\n");
    assert_eq!(host.log, [(3, b"a b 1".to_vec()), (2, b"c".to_vec())]);
}

#[test]
fn the_server_says_what_its_user_may_run() {
    check(&[
        ("return {redis.acl_check_cmd('ECHO'), redis.acl_check_cmd('NULL')}", r"*2\r\n:1\r\n$-1\r\n"),
        (
            "return redis.acl_check_cmd('UNKNOWN')",
            r"-ERR Invalid command passed to server.acl_check_cmd() script: on @user_script:1.\r\n",
        ),
        ("return redis.sha1hex('a')", r"$40\r\n86f7e437faa5a7fce15d1ddcb9eaeaea377667b8\r\n"),
    ]);
}

const LIBRARY: &str = "
local calls = 0
redis.register_function('count', function(keys, arguments) calls = calls + 1 return {calls, keys[1], arguments[1]} end)
redis.register_function{
  function_name = 'read', description = 'reads', flags = {'no-writes'},
  callback = function(keys) return redis.call('ECHO', keys[1]) end,
}
redis.register_function('fail', function() return redis.call('NO') end)
redis.register_function('register', function() redis.register_function('x', function() end) end)
";

#[test]
fn a_library_registers_functions_which_keep_what_is_the_librarys() {
    let mut engine = engine();
    let functions = engine.load_library(LIBRARY.as_bytes()).expect("it is well-formed");
    let [count, read, fail, register] = &functions[..] else { panic!("four are registered") };
    assert_eq!((&count.name[..], &count.description, count.header.no_writes), (&b"count"[..], &None, false));
    assert_eq!((&read.description, read.header.no_writes), (&Some(b"reads".to_vec()), true));
    assert_eq!(read.flags, ["no-writes"]);
    let mut call = |function: &Registered| {
        let (keys, arguments) = (words(&["k1"]), words(&["a1"]));
        let (mut host, mut replies) = (Commands::default(), ReplyBuffer::default());
        if let Err(failure) =
            engine.run(&function.script, keys.args(), arguments.args(), &mut host, &mut replies)
        {
            replies.error(failure.text);
        }
        replies.as_bytes().escape_ascii().to_string()
    };
    assert_eq!(call(count), r"*3\r\n:1\r\n$2\r\nk1\r\n$2\r\na1\r\n");
    assert!(call(count).starts_with(r"*3\r\n:2\r\n"));
    assert_eq!(call(read), r"$2\r\nk1\r\n");
    assert_eq!(call(fail), r"-WRONG no such thing script: on @user_function:8.\r\n");
    assert!(call(register).starts_with(
        "-ERR user_function:9: attempt to call field 'register_function'".replace('\'', r"\'").as_str()
    ));
}

#[test]
fn a_library_that_is_wrong_is_refused_with_what_is_wrong() {
    let mut engine = engine();
    for (code, reason) in [
        ("return 1", "No functions registered"),
        ("x x", "Error compiling function: user_function:1: '=' expected near 'x'"),
        ("x = 1", "Error registering functions: ERR user_function:1: Attempt to modify a readonly table"),
        (
            "redis.register_function('a b', function() end)",
            "Function names can only contain letters, numbers, or underscores(_) and must be at least one character long",
        ),
        (
            "redis.register_function('a', function() end) redis.register_function('A', function() end)",
            "Function already exists in the library",
        ),
        (
            "redis.register_function()",
            "Error registering functions: ERR wrong number of arguments to server.register_function",
        ),
        (
            "redis.register_function('a')",
            "Error registering functions: ERR calling server.register_function with a single argument is only applicable to Lua table (representing named arguments).",
        ),
        (
            "redis.register_function('a', 1)",
            "Error registering functions: ERR second argument to server.register_function must be a function",
        ),
        (
            "redis.register_function{function_name='a'}",
            "Error registering functions: ERR server.register_function must get a callback argument",
        ),
        (
            "redis.register_function{callback=function() end}",
            "Error registering functions: ERR server.register_function must get a function name argument",
        ),
        (
            "redis.register_function{function_name='a', callback=function() end, flags={'x'}}",
            "Error registering functions: ERR unknown flag given",
        ),
        (
            "redis.register_function{function_name='a', callback=function() end, x=1}",
            "Error registering functions: ERR unknown argument given to server.register_function",
        ),
        ("while true do end", "FUNCTION LOAD timeout"),
    ] {
        let error = engine.load_library(code.as_bytes()).err().expect(code);
        assert_eq!(error.to_string(), reason, "{code}");
    }
    let refused = |engine: &mut Engine, code: &str| {
        engine.load_library(code.as_bytes()).err().map(|error| error.to_string())
    };
    let no_commands = "Error registering functions: ERR user_function:1: Script attempted to access nonexistent global variable 'call'";
    assert_eq!(refused(&mut engine, "redis.call('ECHO', 'x')").as_deref(), Some(no_commands));
    assert_eq!(refused(&mut engine, "local call = redis.call").as_deref(), Some(no_commands));
    assert!(engine.load_library(LIBRARY.as_bytes()).is_ok());
}
