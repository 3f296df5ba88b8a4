"""A FastAPI application that keeps the pages that it renders in a cache: `uvicorn fastapi_app:app`.

CACHE_URL says where the cache is (default: valkey://localhost:6379).
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated

from fastapi import Depends, FastAPI, Request
from fastapi.responses import HTMLResponse

import snugly.asyncio

SECONDS = 60
"""How long a page is kept."""


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    """One client for the application: all requests share its connections."""
    url = os.environ.get("CACHE_URL", "valkey://localhost:6379")
    async with snugly.asyncio.Valkey.from_url(url, compression=True) as cache:
        app.state.cache = cache
        yield


def the_cache(request: Request) -> snugly.asyncio.Valkey:
    cache: snugly.asyncio.Valkey = request.app.state.cache
    return cache


app = FastAPI(lifespan=lifespan)


def rendered(number: int) -> bytes:
    """Stands for work that takes long in a real application."""
    items = "".join(f"<li>item {item} of page {number}</li>" for item in range(200))
    return f"<html><body><ul>{items}</ul></body></html>".encode()


@app.get("/pages/{number}")
async def page(number: int, cache: Annotated[snugly.asyncio.Valkey, Depends(the_cache)]) -> HTMLResponse:
    key = f"page:{number}"
    content = await cache.get(key)
    found = content is not None
    if not found:
        content = rendered(number)
        await cache.set(key, content, ex=SECONDS)
    return HTMLResponse(content, headers={"X-Cache": "hit" if found else "miss"})
