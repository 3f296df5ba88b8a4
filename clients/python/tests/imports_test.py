"""Requirements of the package where it is installed by itself."""

from __future__ import annotations

import subprocess
import sys


def test_the_package_imports_no_library_but_that_of_its_clients() -> None:
    program = (
        "import sys, snugly, snugly.asyncio, snugly.codec; print(*{name.partition('.')[0] for name in sys.modules})"
    )
    found = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout.split()
    others = {"aiocache", "celery", "django", "django_redis", "django_valkey", "fastapi", "opentelemetry", "redis"}
    assert "valkey" in found
    assert not others & set(found)
