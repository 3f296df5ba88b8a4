"""Reads back what was written: from a server, from one that is started again on its store, and from a saved file.

It knows ledgers and how a key is read; it knows nothing of the load that wrote it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import servers
from resp import Reply
from soak.instances import Instance
from soak.ledger import Wrong, short
from soak.links import Resp, plain
from soak.values import is_made, reading
from soak.writer import Writer, read_back


def audit(instance: Instance, writers: Sequence[Writer], name: str) -> Counter[str]:
    """Reads every key of these writers, and those of which some states are possible; says how many. Raises Wrong."""
    read = Counter[str]()
    link = Resp(plain(instance.at), 2)
    for writer in writers:
        ledger, steps = writer.ledger, writer.ledger.readings()
        read_back(link, ledger, steps)
        for doubt in ledger.doubts:
            keys = sorted({key for world in doubt.worlds for key in world})
            replies: dict[str, Reply] = {key: link.connection.command(*reading(key, None)[0]) for key in keys}
            ledger.judge(doubt, replies)
        read[name] += len(steps)
        read[f"{name}, in doubt"] += len(ledger.doubts)
    link.close()
    return read


def audit_saved(instance: Instance, name: str) -> Counter[str]:
    """Loads the file that BGSAVE wrote last, in which every string must be one that was written. Raises Wrong."""
    with servers.snugly("--load-rdb", str(instance.saved)) as server, server.connect() as connection:
        keys = connection.command("KEYS", "string:*:*")
        assert isinstance(keys, list)
        for key in keys:
            assert isinstance(key, bytes)
            text = connection.command("GET", key)
            if not isinstance(text, bytes) or not is_made(key.decode(), text):
                raise Wrong(f"{key!r} in the file of BGSAVE is {short(text)}, which nobody has written")
    return Counter({name: len(keys)})
