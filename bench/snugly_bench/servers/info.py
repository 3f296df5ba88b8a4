"""A server's numbers about itself, asked on an existing connection."""

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
    """Memory of keys and values, overhead included."""
    return int(info(client, "memory")["used_memory_dataset"])


def grown_bytes(client: valkey.Valkey) -> int:
    """Memory that Valkey and Redis have from their allocator, without the buffers of clients."""
    memory = info(client, "memory")
    return int(memory["used_memory"]) - int(memory["mem_clients_normal"])


def allocator(client: valkey.Valkey) -> str:
    """The allocator of a server, such as `libc` or `jemalloc-5.3.0`."""
    return str(info(client, "memory")["mem_allocator"])


def dictionary_bytes(client: valkey.Valkey) -> int:
    """Memory of a snugly's dictionaries, which is beside them."""
    return int(info(client, "dictionaries")["dictionary_bytes"])
