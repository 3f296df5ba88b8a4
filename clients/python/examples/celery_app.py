"""A Celery application whose results are stored compressed: `celery --app celery_app worker`.

CACHE_URL says which server has the tasks and the results (default: redis://localhost:6379/0).
"""

from __future__ import annotations

import os

from celery import Celery

URL = os.environ.get("CACHE_URL", "redis://localhost:6379/0")

app = Celery("celery_app", broker=URL, backend=f"snugly.celery.RedisBackend+{URL}")


@app.task  # type: ignore[untyped-decorator]
def page(number: int) -> str:
    items = "".join(f"<li>item {item} of page {number}</li>" for item in range(200))
    return f"<ul>{items}</ul>"


@app.task  # type: ignore[untyped-decorator]
def book(pages: list[str]) -> str:
    return f"<html><body>{''.join(pages)}</body></html>"
