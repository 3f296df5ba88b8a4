"""The modules of a crate, and those of the Python package, use each other in one direction: no circle of files.

A module here is what the root of its crate or package names: a file, or a folder with all that is in it."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import TypeAlias

import pytest

ROOT = Path(__file__).parents[1]
PYTHON = "clients/python/python/snugly"

# Modules that use each other, and count as one: types that are nothing without each other.
TOGETHER: dict[str, list[set[str]]] = {
    "crates/codec/src": [
        {
            "choice", "codecs", "counters", "decoder", "dictionary", "encoder", "envelope", "error", "policy", "record",
            "stopwatch",
        }
    ],
    "crates/commands/src": [{"pattern", "positions", "refusal", "table"}],
    "crates/learning/src": [{"form", "study"}],
    "crates/net/src": [{"connection", "service"}],
    "crates/snugly/src": [{"cli", "generate"}],
    # An entry may have a collection, whose nodes are entries.
    "crates/store/src": [{"entry", "values"}],
}  # fmt: skip
SOURCES = [*(path.relative_to(ROOT).as_posix() for path in sorted(ROOT.glob("crates/*/src"))), PYTHON]

Uses: TypeAlias = dict[str, set[str]]


def rust_uses(root: Path) -> Iterator[tuple[str, str]]:
    # An export of the root of the crate stands for the module that it comes from.
    top = root / "lib.rs" if (root / "lib.rs").exists() else root / "main.rs"
    exports = re.findall(r"^pub use (\w+)::(.*?);", top.read_text(), re.DOTALL | re.MULTILINE)
    homes = {name: module for module, names in exports for name in re.findall(r"\w+", names)}
    for path in root.rglob("*.rs"):
        module = path.relative_to(root).parts[0].removesuffix(".rs")
        # Tests may use what is above them.
        code = re.split(r"#\[cfg\(test\)\]\nmod ", path.read_text())[0]
        code = re.sub(r"//.*", "", code)
        if module in ("lib", "main") or path.name == "tests.rs":
            continue
        for used in re.findall(r"\bcrate::(?:\{(.*?)\};|(\w+))", code, re.DOTALL):
            yield from ((module, homes.get(name, name)) for name in re.findall(r"\w+", " ".join(used)))


def python_uses(root: Path) -> Iterator[tuple[str, str]]:
    for path in root.rglob("*.py"):
        parts = path.relative_to(root).with_suffix("").parts
        # An import in a function or for a type checker is not there yet when the module is.
        for statement in ast.parse(path.read_text()).body:
            if not isinstance(statement, ast.ImportFrom):
                continue
            base = ("snugly", *parts)[: -statement.level] if statement.level else ()
            base += tuple((statement.module or "").split(".")) if statement.module else ()
            for name in statement.names:
                package, *used = (*base, name.name)
                if package == "snugly":
                    yield parts[0], used[0]


def modules(source: str) -> Uses:
    """The uses of each module, with modules that count as one under one name."""
    root = ROOT / source
    find: Callable[[Path], Iterator[tuple[str, str]]] = python_uses if source == PYTHON else rust_uses
    names = {path.stem for path in root.iterdir()}
    one = {name: min(group) for group in TOGETHER.get(source, []) for name in group}
    uses: Uses = {}
    for user, used in find(root):
        user, used = one.get(user, user), one.get(used, used)
        if used in names and used != user:
            uses.setdefault(user, set()).add(used)
    return uses


@pytest.mark.parametrize("source", SOURCES)
def test_modules_use_each_other_in_one_direction(source: str) -> None:
    try:
        TopologicalSorter(modules(source)).prepare()
    except CycleError as error:
        pytest.fail(f"{source}: a circle of modules: {' <- '.join(error.args[1])}")


def test_uses_are_found() -> None:
    assert {"settings", "counters", "clients"} <= modules("crates/server/src")["state"]
    assert {"callbacks", "errors"} <= modules(PYTHON)["clients"]
