"""Random scripts, which run random commands on keys that they name and on others.

It knows how scripts call commands, and whose replies are the same on two servers; random_commands.py has the commands.
"""

from __future__ import annotations

import random

import random_commands
from random_commands import Command

# Commands whose replies are alike in form only, or tell of what is not in keys.
UNLIKE = {
    *[b"TTL", b"PTTL", b"EXPIRETIME", b"PEXPIRETIME", b"KEYS", b"SCAN", b"DUMP", b"RANDOMKEY", b"TIME", b"LASTSAVE"],
    *[b"MEMORY", b"OBJECT", b"COMMAND", b"COMMANDLOG", b"SLOWLOG", b"LATENCY"],
}
# What a script does with its calls: `{calls}` are some of `redis.call(...)`, of which one may throw.
BODIES = [
    "return {{{calls}}}",
    "local replies = {{{calls}}} return replies[#replies]",
    "return {{pcall(function() return {calls} end)}}",
    "return cjson.encode({{pcall(function() return {calls} end)}})",
    "redis.call('select', 1) return {{{calls}}}",
    "local replies = {{{calls}}} redis.call('append', 'a', #replies) return replies",
    "for n = 1, 3 do redis.pcall('rpush', 'l', n) end return {{{calls}}}",
]


def inner(rng: random.Random) -> Command:
    """A command that a script may run, or try to."""
    while (command := random_commands.command(rng))[0].upper() in UNLIKE:
        pass
    return command


def script(rng: random.Random) -> Command:
    """EVAL with the arguments of its calls among its own, so that they can be any bytes."""
    arguments: Command = []
    calls = []
    for command in [inner(rng) for _ in range(rng.choice([1, 1, 2, 3]))]:
        by = rng.choices([b"redis.pcall", b"redis.call"], [3, 1])[0].decode()
        calls.append(f"{by}(unpack(ARGV, {len(arguments) + 1}, {len(arguments) + len(command)}))")
        arguments += command
    text = rng.choices(BODIES, [6, *[1] * (len(BODIES) - 1)])[0].format(calls=", ".join(calls))
    keys = [random_commands.key(rng) for _ in range(rng.randrange(3))]
    name = rng.choices([b"EVAL", b"EVAL_RO"], [6, 1])[0]
    return [name, text.encode(), b"%d" % len(keys), *keys, *arguments]


def sequence(rng: random.Random, length: int) -> list[Command]:
    """About so many requests, of which every other one is a script; some are in transactions."""
    commands: list[Command] = []
    for command in random_commands.sequence(rng, length // 2):
        commands += [command, script(rng)]
    return commands
