"""The libraries of scripts: what the tests of `crates/scripting` expect of them is what a real server does."""

from __future__ import annotations

from pathlib import Path

import pytest

from servers import Server

CASES = Path(__file__).parents[1] / "crates/scripting/src/libraries/cases"
SHOW = (CASES / "show.lua").read_text()

# A real server keeps what a script has set.
RESET = """
cjson.encode_max_depth(1000) cjson.decode_max_depth(1000) cjson.encode_number_precision(14)
cjson.encode_invalid_numbers(false) cjson.decode_invalid_numbers(true) cjson.encode_keep_buffer(true)
cjson.encode_sparse_array(false, 2, 10)
"""


def pairs(path: Path) -> list[tuple[str, str]]:
    """Cases with what is expected of them, in the line below."""
    lines = [line for line in path.read_text().splitlines() if line and not line.startswith("--")]
    return list(zip(lines[::2], map(str.strip, lines[1::2]), strict=True))


def script(case: str) -> str:
    """Lua that shows what the case returns, which is an expression, or statements with a return."""
    body = case if "return" in case else f"return {case}"
    return f"local function case() {body} end\n{SHOW}"


@pytest.mark.parametrize("path", sorted(CASES.glob("*.txt")), ids=lambda path: path.stem)
def test_what_the_cases_expect_is_what_a_real_server_does(peer: Server, path: Path) -> None:
    cases = pairs(path)
    shown = []
    with peer.connect() as connection:
        for case, _ in cases:
            reply = connection.command("EVAL", script(case), 0)
            assert isinstance(reply, bytes), (case, reply)
            shown.append((case, reply.decode()))
            connection.command("EVAL", RESET, 0)
    assert shown == cases
