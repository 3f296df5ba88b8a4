-- The environment of scripts: Lua's own functions as far as they reach nothing outside, in tables that scripts can read
-- and not change, so that nothing of one script is left for the next.
--
-- A table is protected by a proxy: an empty table that finds everything in the real one. What would change or show the
-- proxy itself is replaced here by functions that know of proxies. They never hand out a real table.

local native, server, real_tables = ...

-- Lua's errors name a function as it is called, so these have their own names.
local pcall, xpcall = native.pcall, native.xpcall
local next, rawget, rawset, setmetatable, getmetatable = next, rawget, rawset, setmetatable, getmetatable
local type, error, tostring, ipairs, pairs, unpack = type, error, tostring, ipairs, pairs, unpack

-- The real table behind each proxy.
local real = {}

local function refuse_change()
  error("Attempt to modify a readonly table", 2)
end

local function protect(contents)
  local proxy = setmetatable({}, { __index = contents, __newindex = refuse_change })
  real[proxy] = contents
  return proxy
end

-- Makes a function that changes its first argument refuse a proxy.
local function for_own_tables(change)
  return native.as_native(function(table, ...)
    if real[table] then
      error("Attempt to modify a readonly table", 0)
    end
    return change(table, ...)
  end)
end

-- Lua's errors as scripts know them: text where the engine has an object. A script that is ended from outside cannot go
-- on: the object of that error is raised again.
local function caught(ok, problem, ...)
  if not ok then
    if type(problem) == "userdata" or type(problem) == "string" then
      problem = native.message(problem)
    elseif type(problem) == "table" and not real[problem] then
      local text = rawget(problem, "err")
      if type(text) == "string" or type(text) == "number" then
        problem = text
      end
    end
    return false, problem
  end
  return ok, problem, ...
end

local function caught_as_it_is(ok, problem, ...)
  if not ok then
    problem = native.error_value(problem)
  end
  return ok, problem, ...
end

local resume, concat, tonumber = coroutine.resume, table.concat, tonumber

local function as_error(problem)
  if type(problem) ~= "table" then
    problem = { err = "ERR " .. tostring(problem) }
  end
  return problem
end

-- Whether a number is one that C has as an index.
local function is_index(number)
  return number > -2 ^ 31 and number < 2 ^ 31
end

-- What collectgarbage says of what it is not let do.
local collections = { collect = 0, stop = 0, restart = 0, step = false, setpause = 200, setstepmul = 200 }

local globals = {
  _VERSION = _VERSION,
  assert = assert,
  error = error,
  ipairs = ipairs,
  rawequal = rawequal,
  select = select,
  tonumber = tonumber,
  tostring = tostring,
  type = type,
  gcinfo = gcinfo,

  pcall = function(...)
    return caught(pcall(...))
  end,

  xpcall = function(action, handler)
    return caught_as_it_is(xpcall(action, function(problem)
      if native.is_kill(problem) then
        return problem
      end
      return handler(native.error_value(problem))
    end))
  end,

  next = native.as_native(function(table, key)
    return next(real[table] or table, key)
  end),

  pairs = native.as_native(function(table)
    local contents = real[table]
    if not contents then
      return pairs(table)
    end
    local copy = {}
    for key, value in next, contents do
      copy[key] = value
    end
    return next, copy, nil
  end),

  rawget = function(table, key)
    return rawget(real[table] or table, key)
  end,

  rawset = for_own_tables(rawset),
  setmetatable = for_own_tables(setmetatable),

  getmetatable = function(object)
    if real[object] then
      return nil
    end
    if type(object) == "string" then
      return native.string_metatable
    end
    return getmetatable(object)
  end,

  -- As many as a stack takes: Lua's own check relies on an overflow that compilers need not keep (CVE-2025-46817).
  unpack = native.as_native(function(table, first, last)
    local from, to = tonumber(first or 1), tonumber(last or #table)
    if from and to and not (is_index(from) and is_index(to) and to - from < 7990) then
      error("too many results to unpack")
    end
    return unpack(table, first, last)
  end),

  -- What scripts that were written for other servers give to xpcall.
  __redis__err__handler = as_error,
  __server__err__handler = as_error,

  -- The collector belongs to all scripts.
  collectgarbage = native.as_native(function(option)
    option = option or "collect"
    if option == "count" then
      return collectgarbage("count")
    end
    local result = collections[option]
    if result == nil then
      error("bad argument #1 to 'collectgarbage' (invalid option '" .. tostring(option) .. "')")
    end
    return result
  end),

  loadstring = native.as_native(function(text, name)
    if type(text) ~= "string" and type(text) ~= "number" then
      error("bad argument #1 to 'loadstring' (string expected, got " .. (text == nil and "nil" or type(text)) .. ")")
    end
    return native.load(tostring(text), tostring(name or text))
  end),

  load = native.as_native(function(reader, name)
    if type(reader) ~= "function" then
      error("bad argument #1 to 'load' (function expected, got " .. type(reader) .. ")")
    end
    local pieces = {}
    while true do
      local ok, piece = pcall(reader)
      if not ok then
        return nil, native.message(piece)
      elseif piece == nil or piece == "" then
        return native.load(concat(pieces), tostring(name or "=(load)"))
      elseif type(piece) ~= "string" then
        return nil, "reader function must return a string"
      end
      pieces[#pieces + 1] = piece
    end
  end),
}

local coroutines = {}
for name, value in pairs(coroutine) do
  coroutines[name] = value
end
coroutines.resume = function(...)
  return caught_as_it_is(resume(...))
end

local tables = {}
for name, value in pairs(table) do
  tables[name] = value
end
for _, name in ipairs({ "insert", "remove", "sort", "setn" }) do
  tables[name] = for_own_tables(table[name])
end

-- Matching descends with each item of a pattern, on the stack of the thread, and Lua 5.1 sets no bound.
local longest_pattern = 2000
local has_special = "[%^%$%*%+%?%.%(%[%%%-]"
local find = string.find
local function refuse_long(pattern, is_plain)
  if type(pattern) == "string" and #pattern > longest_pattern and not is_plain and find(pattern, has_special) then
    error("pattern too complex")
  end
end
for _, name in ipairs({ "match", "gmatch", "gfind", "gsub" }) do
  local search = real_tables.string[name]
  real_tables.string[name] = native.as_native(function(text, pattern, ...)
    refuse_long(pattern)
    return search(text, pattern, ...)
  end)
end
real_tables.string.find = native.as_native(function(text, pattern, start, is_plain, ...)
  refuse_long(pattern, is_plain)
  return find(text, pattern, start, is_plain, ...)
end)

globals.coroutine = protect(coroutines)
globals.table = protect(tables)
globals.os = protect({ clock = native.clock })
for name, contents in pairs(real_tables) do
  globals[name] = protect(contents)
end

-- Strings find their methods where `string` does.
native.string_metatable = protect({ __index = globals.string })
getmetatable("").__index = globals.string

local function refuse_unknown(_, name)
  error("Script attempted to access nonexistent global variable '" .. tostring(name) .. "'", 2)
end

-- The tables of one kind of scripts: what all have, and `redis` and `server`. Returns the environment, and the table
-- behind it.
local function environment_with(contents)
  local globals_here = {}
  for name, value in pairs(globals) do
    globals_here[name] = value
  end
  globals_here.server = protect(contents)
  globals_here.redis = globals_here.server
  setmetatable(globals_here, { __index = refuse_unknown })
  globals_here._G = protect(globals_here)
  return globals_here._G, globals_here
end

local for_functions = {}
for name, value in pairs(server) do
  for_functions[name] = value
end

for _, name in ipairs({ "breakpoint", "debug", "replicate_commands" }) do
  for_functions[name] = nil
end

local scripts, script_globals = environment_with(server)
local functions = environment_with(for_functions)

-- Runs a script to its end, or to its error, which `native.fail` keeps.
local function run_script(script, keys, arguments)
  script_globals.KEYS, script_globals.ARGV = keys, arguments
  return xpcall(script, native.fail)
end

local function run_function(callback, keys, arguments)
  return xpcall(function()
    return callback(keys, arguments)
  end, native.fail)
end

-- Runs the code of a library, which registers functions and runs no commands.
local function load_library(code)
  setmetatable(for_functions, { __index = refuse_unknown })
  for_functions.call, for_functions.pcall = nil, nil
  for_functions.register_function = native.register_function
  local ok, problem = xpcall(code, native.fail)
  for_functions.call, for_functions.pcall = server.call, server.pcall
  for_functions.register_function = nil
  setmetatable(for_functions, nil)
  return ok, problem
end

return scripts, functions, run_script, run_function, load_library
