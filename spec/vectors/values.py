"""The values that GLIDE and snugly encode for the vectors, as rules."""

from collections.abc import Iterator

from rules import Rule

RECORD = '{"id":#,"name":"customer #","email":"customer#@example.com","active":true,"tags":["a","b"]}\n'
ROW = "#,2026-01-01T00:00:00Z,page/#,200,GET\n"

VALUES: dict[str, Rule] = {
    "letters-32": {"repeat": {"text": "a"}, "size": 32},
    "letters-63": {"repeat": {"text": "a"}, "size": 63},
    "letters-64": {"repeat": {"text": "a"}, "size": 64},
    "letters-65": {"repeat": {"text": "a"}, "size": 65},
    "json-300": {"count": RECORD, "size": 300},
    "json-2500": {"count": RECORD, "size": 2500},
    "csv-1200": {"count": ROW, "size": 1200},
    "json-100000": {"count": RECORD, "size": 100_000},
    "unicode": {"repeat": {"text": "Füchse können über Zäune springen 🦊 "}, "size": 301},
    "zeros-1000000": {"repeat": {"hex": "00"}, "size": 1_000_000},
    "binary": {"join": [{"noise": 7, "size": 100}, {"repeat": {"hex": "00ff10"}, "size": 900}]},
    "noise-1000": {"noise": 1, "size": 1000},
    "noise-131072-and-zeros": {"join": [{"noise": 2, "size": 300}, {"repeat": {"hex": "00"}, "size": 200_000}]},
    "newlines": {"repeat": {"hex": "0d0a"}, "size": 500},
}

# Every value at the default level, and two of them at every level of interest.
LEVELS: dict[str, list[int]] = {"zstd": [-100, -5, 1, 9, 19, 22], "lz4": [-20, 3, 9, 12]}
EVERY_LEVEL = ["json-2500", "binary"]


def encodings() -> Iterator[tuple[str, str, int | None]]:
    """The name of a value, a backend and a level (None: the default) for every vector that a writer makes."""
    for backend, levels in LEVELS.items():
        for name in VALUES:
            yield name, backend, None
        for name in EVERY_LEVEL:
            for level in levels:
                yield name, backend, level
