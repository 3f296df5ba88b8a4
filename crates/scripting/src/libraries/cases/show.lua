-- Shows what the function `case` returns, which stands in a line before this.
local show

local function show_table(table_)
    local shown = {}
    for key, value in pairs(table_) do
        table.insert(shown, '[' .. show(key) .. ']=' .. show(value))
    end
    table.sort(shown)
    return '{' .. table.concat(shown, ' ') .. '}'
end

local function show_byte(byte)
    return string.format('\\x%02x', string.byte(byte))
end

local shows = {
    string = function(value) return '"' .. string.gsub(value, '[%c\128-\255]', show_byte) .. '"' end,
    number = function(value) return string.format('%.17g', value) end,
    userdata = function(value) return value == cjson.null and 'null' or 'userdata' end,
    table = show_table,
}

show = function(value)
    return (shows[type(value)] or tostring)(value)
end

local function show_all(ok, ...)
    if not ok then
        return 'error: ' .. show((...))
    end
    local shown = {}
    for position = 1, select('#', ...) do
        shown[position] = show((select(position, ...)))
    end
    return #shown == 0 and 'nothing' or table.concat(shown, ', ')
end

return show_all(pcall(case))
