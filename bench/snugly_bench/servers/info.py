"""What a server tells of itself, asked by a connection that is there."""

from __future__ import annotations

from typing import Any

import valkey


def info(client: valkey.Valkey, section: str) -> dict[str, Any]:
    fields = client.info(section)
    assert isinstance(fields, dict)
    return fields


def setting(client: valkey.Valkey, name: str) -> str:
    found = client.config_get(name)
    assert isinstance(found, dict)
    return str(found[name])


def cpu_seconds(client: valkey.Valkey) -> float:
    """Processor time that the whole process has used, user and system."""
    usage = info(client, "cpu")
    return float(usage["used_cpu_user"]) + float(usage["used_cpu_sys"])


def dataset_bytes(client: valkey.Valkey) -> int:
    """What keys and values take, overhead included."""
    return int(info(client, "memory")["used_memory_dataset"])


def dictionary_bytes(client: valkey.Valkey) -> int:
    """What a snugly's dictionaries take beside them."""
    return int(info(client, "dictionaries")["dictionary_bytes"])
