//! What the libraries do, beside what Valkey's do.
//!
//! The files of `cases` have a line of Lua each, and below it what Valkey 9.1 makes of it, as `show.lua` shows it.

use mlua::{Lua, LuaOptions, StdLib, Value};
use proptest::prelude::*;

use super::{Libraries, install};

fn lua() -> (Lua, Libraries) {
    let libraries = StdLib::MATH | StdLib::STRING | StdLib::TABLE;
    let lua = Lua::new_with(libraries, LuaOptions::default()).expect("these are safe");
    let libraries = install(&lua).expect("there is memory");
    (lua, libraries)
}

/// A case is an expression, or statements with a return.
fn script(case: &str) -> String {
    let body = if case.contains("return") { case.to_string() } else { format!("return {case}") };
    format!("local function case() {body} end\n{}", include_str!("cases/show.lua"))
}

fn check(cases: &str) {
    let (lua, libraries) = lua();
    let mut lines = cases.lines().filter(|line| !line.is_empty() && !line.starts_with("--"));
    let mut wrong = Vec::new();
    while let Some(case) = lines.next() {
        let expected = lines.next().expect("a case has a result").trim_start();
        let shown = lua.load(script(case)).set_name("@user_script").eval::<String>();
        let shown = shown.unwrap_or_else(|error| error.to_string());
        if shown != expected {
            wrong.push(format!("{case}\n  gives  {shown}\n  not    {expected}"));
        }
        libraries.reset();
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn bit_does_what_valkeys_does() {
    check(include_str!("cases/bit.txt"));
}

#[test]
fn cjson_does_what_valkeys_does() {
    check(include_str!("cases/cjson.txt"));
}

#[test]
fn cmsgpack_does_what_valkeys_does() {
    check(include_str!("cases/cmsgpack.txt"));
}

#[test]
fn struct_does_what_valkeys_does() {
    check(include_str!("cases/struct.txt"));
}

#[test]
fn math_random_does_what_valkeys_does() {
    check(include_str!("cases/random.txt"));
}

#[test]
fn a_reset_forgets_settings() {
    let (lua, libraries) = lua();
    let state = "return table.concat({cjson.encode_max_depth(), cjson.decode_max_depth(), \
         cjson.encode_number_precision(), tostring(cjson.encode_keep_buffer()), \
         tostring(cjson.encode_invalid_numbers()), tostring(cjson.decode_invalid_numbers()), \
         tostring((cjson.encode_sparse_array())), (select(2, cjson.encode_sparse_array())), \
         (select(3, cjson.encode_sparse_array()))}, ' ')";
    let state = || lua.load(state).eval::<String>().expect("it is a script");
    let first = state();
    lua.load(
        "cjson.encode_max_depth(2) cjson.decode_max_depth(3) cjson.encode_number_precision(4) \
         cjson.encode_keep_buffer(false) cjson.encode_invalid_numbers('null') cjson.decode_invalid_numbers(false) \
         cjson.encode_sparse_array(true, 5, 6)",
    )
    .exec()
    .expect("it is a script");
    let changed = state();
    assert!(first.split(' ').zip(changed.split(' ')).all(|(before, after)| before != after), "{changed}");
    libraries.reset();
    assert_eq!(state(), first);
}

#[test]
fn a_seed_is_forgotten_and_numbers_go_on() {
    let (lua, libraries) = lua();
    let numbers = |script: &str| {
        let numbers: String =
            lua.load(format!("{script} return math.random() .. ' ' .. math.random()")).eval().unwrap();
        libraries.reset();
        numbers
    };
    let seeded = numbers("math.randomseed(7)");
    let without = [numbers(""), numbers("math.randomseed(8) math.randomseed(9)"), numbers(""), numbers("")];
    assert_eq!(numbers("math.randomseed(7)"), seeded);
    let different: std::collections::HashSet<_> = without.iter().chain([&seeded]).collect();
    assert_eq!(different.len(), 5);
}

/// A thread of the server has a stack of two megabytes.
#[test]
fn the_deepest_nesting_fits_on_a_stack() {
    let nested = || {
        let (lua, _) = lua();
        let script = "cjson.encode_max_depth(1e9) cjson.decode_max_depth(1e9) \
             local function nested(depth) local t = {} for i = 1, depth do t = {a = t} end return t end \
             local json = cjson.encode(nested(999)) \
             local ok, deeper = pcall(cjson.encode, nested(1000)) \
             local read = cjson.encode(cjson.decode(json)) == json \
             local read_deeper, text = pcall(cjson.decode, string.rep('[', 9999)) \
             local unpacked = pcall(cmsgpack.unpack, string.rep('\\145', 1000) .. '\\1') \
             local deepest = pcall(cmsgpack.unpack, string.rep('\\145', 1001) .. '\\1') \
             return ok, deeper, read, read_deeper, text, unpacked, deepest";
        let results = lua.load(script).eval::<(bool, String, bool, bool, String, bool, bool)>();
        let (encoded, too_deep, read, decoded, text, unpacked, deepest) = results.expect("it is a script");
        assert_eq!((encoded, read, decoded, unpacked, deepest), (false, true, false, true, false));
        assert_eq!(too_deep, "Cannot serialise, excessive nesting (1001)");
        assert_eq!(text, "Found too many nested data structures (1001) at character 1001");
    };
    let thread = std::thread::Builder::new().stack_size(2 << 20).spawn(nested).expect("a thread starts");
    thread.join().expect("the stack is deep enough");
}

/// Without a limit, an index would be a size that the script only claims.
#[test]
fn an_array_of_holes_has_an_end() {
    let (lua, _) = lua();
    let script =
        "cjson.encode_sparse_array(true, 0) return select(2, pcall(cjson.encode, {[2147483647] = 1}))";
    let text: String = lua.load(script).eval().expect("it is a script");
    assert_eq!(text, "Cannot serialise: the JSON is larger than 512 MB");
}

#[test]
fn scripts_cannot_tell_the_functions_from_those_of_c() {
    let (lua, _) = lua();
    let script = "return pcall(string.dump, cjson.encode)";
    let (dumped, text): (bool, String) = lua.load(script).eval().expect("it is a script");
    assert_eq!((dumped, text.as_str()), (false, "unable to dump given function"));
}

#[test]
fn errors_inside_a_coroutine_are_strings_with_its_line() {
    let (lua, _) = lua();
    let script = "return coroutine.resume(coroutine.create(function()\n cjson.decode('x') end))";
    let results = lua.load(script).set_name("@user_script").eval::<(bool, String)>();
    let text = "user_script:2: Expected value but found invalid token at character 1".to_string();
    assert_eq!(results.expect("it is a script"), (false, text));
}

/// A value that both formats carry as it is.
#[derive(Clone, Debug)]
enum Plain {
    Boolean(bool),
    Integer(i64),
    Float(f64),
    String(Vec<u8>),
    Array(Vec<Plain>),
    Object(Vec<(Vec<u8>, Plain)>),
}

fn plain(depth: u32) -> impl Strategy<Value = Plain> {
    let leaf = prop_oneof![
        any::<bool>().prop_map(Plain::Boolean),
        (-99_999_999_999_999_i64..=99_999_999_999_999).prop_map(Plain::Integer),
        // A few digits, as JSON has no more than fourteen.
        (-9_999_999_i64..=9_999_999, -30..30)
            .prop_map(|(digits, scale)| Plain::Float(digits as f64 * 10_f64.powi(scale))),
        prop::collection::vec(any::<u8>(), 0..40).prop_map(Plain::String),
    ];
    leaf.prop_recursive(depth, 60, 8, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..8).prop_map(Plain::Array),
            prop::collection::vec((prop::collection::vec(any::<u8>(), 0..9), inner), 1..8)
                .prop_map(Plain::Object),
        ]
    })
}

fn to_lua(lua: &Lua, plain: &Plain) -> mlua::Result<Value> {
    Ok(match plain {
        Plain::Boolean(boolean) => Value::Boolean(*boolean),
        Plain::Integer(integer) => Value::Integer(*integer),
        Plain::Float(number) => Value::Number(*number),
        Plain::String(bytes) => Value::String(lua.create_string(bytes)?),
        Plain::Array(values) => {
            let table = lua.create_table()?;
            for value in values {
                table.raw_push(to_lua(lua, value)?)?;
            }
            Value::Table(table)
        }
        Plain::Object(entries) => {
            let table = lua.create_table()?;
            for (key, value) in entries {
                table.raw_set(lua.create_string(key)?, to_lua(lua, value)?)?;
            }
            Value::Table(table)
        }
    })
}

/// Whether values are the same, but for the last digits of numbers if these are said to be equal near `tolerance`.
fn same(a: &Value, b: &Value, tolerance: f64) -> bool {
    match (a, b) {
        (Value::Table(a), Value::Table(b)) => {
            let count = |table: &mlua::Table| table.pairs::<Value, Value>().count();
            let found = |pair: mlua::Result<(Value, Value)>| {
                pair.is_ok_and(|(key, value)| {
                    b.raw_get::<Value>(key).is_ok_and(|other| same(&value, &other, tolerance))
                })
            };
            count(a) == count(b) && a.pairs().all(found)
        }
        (Value::Integer(_) | Value::Number(_), Value::Integer(_) | Value::Number(_)) => {
            let number =
                |value: &Value| value.as_integer().map(|integer| integer as f64).or(value.as_number());
            let (a, b) = (number(a).unwrap_or(0.0), number(b).unwrap_or(1.0));
            (a - b).abs() <= a.abs() * tolerance
        }
        (a, b) => a == b,
    }
}

fn round_trip(value: &Plain, encode: &str, decode: &str, tolerance: f64) {
    let (lua, _) = lua();
    let value = to_lua(&lua, value).expect("there is memory");
    let script = format!("local value = ... return {decode}({encode}(value))");
    let read: Value = lua.load(script).call(value.clone()).expect("what is written can be read");
    assert!(same(&value, &read, tolerance), "{value:#?} is read as {read:#?}");
}

proptest! {
    #[test]
    fn json_is_read_as_what_was_written(value in plain(5)) {
        round_trip(&value, "cjson.encode", "cjson.decode", 1e-13);
    }

    #[test]
    fn messagepack_is_unpacked_as_what_was_packed(value in plain(5)) {
        round_trip(&value, "cmsgpack.pack", "cmsgpack.unpack", 0.0);
    }

    #[test]
    fn packed_integers_are_unpacked(values in prop::collection::vec(any::<i32>(), 0..9), format in "[<>!]{0,2}") {
        let (lua, _) = lua();
        let items = "i".repeat(values.len());
        let script = format!("return struct.unpack('{format}{items}', struct.pack('{format}{items}', ...))");
        let read: mlua::Variadic<i32> = lua.load(script).call(mlua::Variadic::from(values.clone())).unwrap();
        prop_assert_eq!(&read[..values.len()], &values[..]);
    }

    /// `string.format` is C's `printf`.
    #[test]
    fn numbers_are_written_as_printf_does(bits in any::<u64>(), scale in -400..400, precision in 1..=14) {
        let (lua, _) = lua();
        let any = f64::from_bits(bits);
        let short = (bits >> 44) as f64 * 10_f64.powi(scale);
        for number in [any, short].into_iter().filter(|number| number.is_finite()) {
            let script = format!(
                "cjson.encode_number_precision({precision}) \
                 return cjson.encode(...), string.format('%.{precision}g', ...)"
            );
            let (written, printed): (String, String) = lua.load(script).call(number).unwrap();
            prop_assert_eq!(written, printed);
        }
    }

    /// `tonumber` is C's `strtod` with nothing behind the number.
    #[test]
    fn numbers_are_read_as_strtod_does(text in number_text()) {
        let (lua, _) = lua();
        let script = "local ok, number = pcall(cjson.decode, ...) return ok and number or false, tonumber(...) or false";
        let (decoded, read): (Value, Value) = lua.load(script).call(text).unwrap();
        let bits = |value: &Value| match value {
            Value::Integer(integer) => (*integer as f64).to_bits(),
            Value::Number(number) if number.is_nan() => f64::NAN.to_bits(),
            Value::Number(number) => number.to_bits(),
            _ => 1,
        };
        prop_assert_eq!(bits(&decoded), bits(&read));
    }
}

fn number_text() -> impl Strategy<Value = String> {
    prop_oneof![
        "-?[0-9]{1,20}(\\.[0-9]{0,20})?([eE][-+]?[0-9]{1,3})?",
        "[-+]?0[xX][0-9a-fA-F]{1,20}(\\.[0-9a-fA-F]{0,20})?([pP][-+]?[0-9]{1,3})?",
        "-?[0-9][0-9.xeEp+-]{0,6}",
        "[-+]?(inf|INF|infinity|nan|NaN|nan\\(1\\))",
    ]
}
