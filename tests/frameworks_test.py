"""Libraries that people put on top of a client, with the scripts that they bring: locks, limits, caches, queues.

They are used as they come, against a real server. docs/frameworks.md has what works, in words.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import time
from collections.abc import Callable, Iterator
from typing import Any

import cashews
import dogpile.cache
import dramatiq.brokers.redis
import flask
import flask_caching
import flask_limiter
import flask_limiter.util
import huey
import kombu.connection
import limits
import pottery
import pyrate_limiter
import pytest
import redis
import redis_lock
import rq
import valkey
from aiocache import Cache
from aiocache.lock import OptimisticLock, OptimisticLockError, RedLock
from celery import Celery, group
from celery.contrib.testing.worker import start_worker
from django.conf import settings
from django.core.cache import BaseCache, CacheHandler

from plays import Line, assert_alike, each, each_protocol, script
from servers import Server
from threads import in_threads

# Long enough that nothing expires while it is used, however slow the machine is.
LEASE = 60


@pytest.fixture(autouse=True)
def disconnected(server: Server) -> Iterator[None]:
    """Ends the connections that libraries leave open, for which the next test would wait."""
    yield
    with server.connect() as connection:
        connection.command("CLIENT", "KILL", "SKIPME", "yes")


def url(server: Server, scheme: str = "redis") -> str:
    return f"{scheme}://127.0.0.1:{server.port}"


# Locks.


def lock_of_valkey_py(server: Server) -> Any:
    return valkey.Valkey(port=server.port).lock("lock", timeout=LEASE)


def lock_of_redis_py(server: Server) -> Any:
    return redis.Redis(port=server.port).lock("lock", timeout=LEASE)


def lock_of_python_redis_lock(server: Server) -> Any:
    return redis_lock.Lock(redis.StrictRedis(port=server.port), "lock", expire=LEASE)


def lock_of_pottery(server: Server) -> Any:
    return pottery.Redlock(key="lock", masters={redis.Redis(port=server.port)}, auto_release_time=LEASE)


LOCKS = [lock_of_valkey_py, lock_of_redis_py, lock_of_python_redis_lock, lock_of_pottery]
each_lock = pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.__name__.removeprefix("lock_of_"))
each_client = pytest.mark.parametrize("library", [valkey.Valkey, redis.Redis], ids=["valkey-py", "redis-py"])


@each_lock
def test_a_lock_is_held_by_one(server: Server, lock: Callable[[Server], Any]) -> None:
    first, second = lock(server), lock(server)
    assert first.acquire(blocking=False)
    assert not second.acquire(blocking=False)
    first.release()
    assert second.acquire(blocking=False)
    second.release()


@each_lock
def test_what_is_done_under_a_lock_is_not_done_twice(server: Server, lock: Callable[[Server], Any]) -> None:
    client = valkey.Valkey(port=server.port)
    client.set("count", 0)

    def add() -> None:
        own = lock(server)
        for _ in range(10):
            assert own.acquire()
            value = client.get("count")
            assert isinstance(value, bytes)
            client.set("count", int(value) + 1)
            own.release()

    in_threads(*[add] * 6)
    assert client.get("count") == b"60"


@each_client
def test_a_lock_is_extended_and_released_by_who_holds_it(server: Server, library: Any) -> None:
    client = library(port=server.port)
    held = client.lock("lock", timeout=LEASE)
    assert held.acquire()
    assert held.extend(LEASE)
    assert client.pttl("lock") > LEASE * 1000
    assert held.reacquire()
    assert client.pttl("lock") <= LEASE * 1000
    client.set("lock", "another's")
    for change in (held.release, functools.partial(held.extend, 1), held.reacquire):
        held.local.token = held.local.token or b"own"
        with pytest.raises(Exception, match=r"no longer owned|not owned"):
            change()
    assert client.get("lock") == b"another's"


def test_locks_that_wait_without_blocking_a_thread(server: Server) -> None:
    async def hold(number: int, order: list[int]) -> None:
        async with redis.asyncio.Redis(port=server.port) as client, client.lock("lock", timeout=LEASE):
            order.append(number)
            await asyncio.sleep(0)
            order.append(number)

    async def all_of_them() -> list[int]:
        order: list[int] = []
        await asyncio.gather(*[hold(number, order) for number in range(8)])
        return order

    order = asyncio.run(all_of_them())
    assert order[::2] == order[1::2]
    assert sorted(order[::2]) == list(range(8))


def test_locks_of_aiocache(server: Server) -> None:
    async def work() -> None:
        cache = Cache(Cache.REDIS, endpoint="127.0.0.1", port=server.port)
        try:
            async with RedLock(cache, "key", lease=LEASE):
                assert await cache.exists("key-lock")
            assert not await cache.exists("key-lock")
            await cache.set("value", "1")
            async with OptimisticLock(cache, "value") as lock:
                await lock.cas("2")
                await cache.set("value", "3")
                with pytest.raises(OptimisticLockError):
                    await lock.cas("4")
            assert await cache.get("value") == "3"
            assert await cache.increment("count", 5) == 5
        finally:
            await cache.close()

    asyncio.run(work())


# Django.

BACKENDS = {
    "Django": ("django.core.cache.backends.redis.RedisCache", "redis"),
    "django-redis": ("django_redis.cache.RedisCache", "redis"),
    "django-valkey": ("django_valkey.cache.ValkeyCache", "valkey"),
}
each_backend = pytest.mark.parametrize("name", BACKENDS)
each_with_locks = pytest.mark.parametrize("name", ["django-redis", "django-valkey"])


@contextlib.contextmanager
def django_cache(server: Server, name: str) -> Iterator[BaseCache]:
    backend, scheme = BACKENDS[name]
    if not settings.configured:
        settings.configure()
    caches = CacheHandler({"default": {"BACKEND": backend, "LOCATION": f"{url(server, scheme)}/0"}})
    try:
        yield caches["default"]
    finally:
        caches.close_all()


@each_backend
def test_counters_of_django_lose_nothing(server: Server, name: str) -> None:
    with django_cache(server, name) as cache:
        cache.set("count", 0)

        def count() -> None:
            for _ in range(300):
                cache.incr("count")

        in_threads(*[count] * 8)
        assert cache.get("count") == 2400


@each_backend
def test_counters_of_django_that_are_not_there_are_refused(server: Server, name: str) -> None:
    with django_cache(server, name) as cache:
        with pytest.raises(ValueError, match="nothing"):
            cache.incr("nothing")
        assert cache.get("nothing") is None
        cache.set("count", 5, timeout=100)
        assert cache.decr("count", 2) == 3
        assert not cache.add("count", 1)


@each_with_locks
def test_locks_of_django(server: Server, name: str) -> None:
    with django_cache(server, name) as cache:
        held: Any = cache
        with held.lock("name", timeout=LEASE):
            assert not held.lock("name", timeout=LEASE).acquire(blocking=False)
        assert held.lock("name", timeout=LEASE).acquire(blocking=False)


# Limits of rates.

STRATEGIES: dict[str, Any] = {
    "fixed": limits.strategies.FixedWindowRateLimiter,
    "moving": limits.strategies.MovingWindowRateLimiter,
    "sliding": limits.strategies.SlidingWindowCounterRateLimiter,
}


@pytest.mark.parametrize("scheme", ["redis", "valkey"])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_windows_of_limits_let_through_what_they_promise(server: Server, strategy: str, scheme: str) -> None:
    limiter = STRATEGIES[strategy](limits.storage.storage_from_string(url(server, scheme)))
    rate = limits.parse("20/hour")
    passed: list[bool] = []

    def hit() -> None:
        passed.extend(limiter.hit(rate, "user") for _ in range(10))

    in_threads(*[hit] * 4)
    assert passed.count(True) == 20
    assert limiter.get_window_stats(rate, "user").remaining == 0
    assert limiter.test(rate, "another")


@pytest.mark.parametrize("strategy", ["fixed-window", "moving-window", "sliding-window-counter"])
def test_flask_limiter_refuses_who_asks_too_often(server: Server, strategy: str) -> None:
    app = flask.Flask("application")
    limiter = flask_limiter.Limiter(
        flask_limiter.util.get_remote_address, app=app, storage_uri=url(server), strategy=strategy
    )
    app.route("/")(limiter.limit("3/hour")(lambda: "fine"))
    client = app.test_client()
    assert [client.get("/").status_code for _ in range(5)] == [200, 200, 200, 429, 429]


# Caches.


def test_flask_caching_keeps_values(server: Server) -> None:
    app = flask.Flask("application")
    cache = flask_caching.Cache(app, config={"CACHE_TYPE": "RedisCache", "CACHE_REDIS_URL": url(server)})
    with app.app_context():
        cache.set("a", {"b": [1, 2]})
        cache.set_many({"x": 1, "y": 2})
        assert cache.get("a") == {"b": [1, 2]}
        assert cache.get_many("x", "y", "z") == [1, 2, None]
        cache.delete("a")
        assert cache.get("a") is None


@pytest.mark.parametrize("kind", ["redis", "valkey"])
def test_dogpile_creates_a_value_once(server: Server, kind: str) -> None:
    arguments = {"url": url(server, kind), "distributed_lock": True, "thread_local_lock": False, "lock_timeout": LEASE}
    region = dogpile.cache.make_region().configure(f"dogpile.cache.{kind}", arguments=arguments)
    created: list[int] = []

    def create() -> str:
        created.append(1)
        time.sleep(0.05)
        return "made"

    def get() -> None:
        assert region.get_or_create("key", create) == "made"

    in_threads(*[get] * 6)
    assert len(created) == 1


def test_cashews_locks_counts_and_limits(server: Server) -> None:
    async def work() -> None:
        cache = cashews.Cache()
        cache.setup(url(server))

        @cache.rate_limit(limit=3, period="1h")
        async def limited() -> int:
            return 1

        async with cache.lock("lock", expire=LEASE):
            assert await cache.incr("count", expire=LEASE) == 1
        for _ in range(3):
            await limited()
        with pytest.raises(cashews.RateLimitError):
            await limited()
        await cache.close()

    asyncio.run(work())


# Scripts written after those of other languages' libraries.

REDSYNC_DELETE = """local val = redis.call("GET", KEYS[1])
if val == ARGV[1] then
    return redis.call("DEL", KEYS[1])
elseif val == false then
    return -1
else
    return 0
end"""
REDSYNC_TOUCH = """if redis.call("GET", KEYS[1]) == ARGV[1] then
    return redis.call("PEXPIRE", KEYS[1], ARGV[2])
else
    return 0
end"""
SPRING_OBTAIN = """local lockClientId = redis.call('GET', KEYS[1])
if lockClientId == ARGV[1] then
    redis.call('PEXPIRE', KEYS[1], ARGV[2])
    return true
elseif not lockClientId then
    redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
    return true
end
return false"""
SPRING_RELEASE = """if redis.call('GET', KEYS[1]) == ARGV[1] then
    redis.call('UNLINK', KEYS[1])
    redis.call('PUBLISH', ARGV[2], KEYS[1])
    return true
end
return false"""
SPRING_RATE = """redis.replicate_commands()
local rate, capacity, now, requested = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local ttl = math.floor(capacity / rate * 2)
if now == nil then now = redis.call('TIME')[1] end
local last_tokens = tonumber(redis.call("get", KEYS[1]))
if last_tokens == nil then last_tokens = capacity end
local last_refreshed = tonumber(redis.call("get", KEYS[2]))
if last_refreshed == nil then last_refreshed = 0 end
local filled_tokens = math.min(capacity, last_tokens + math.max(0, now - last_refreshed) * rate)
local allowed, new_tokens, allowed_num = filled_tokens >= requested, filled_tokens, 0
if allowed then
    new_tokens = filled_tokens - requested
    allowed_num = 1
end
if ttl > 0 then
    redis.call("setex", KEYS[1], ttl, new_tokens)
    redis.call("setex", KEYS[2], ttl, now)
end
return {allowed_num, new_tokens}"""
NODE_REDLOCK_ACQUIRE = """
-- Return 0 if an entry already exists.
for i, key in ipairs(KEYS) do
    if redis.call("exists", key) == 1 then
        return 0
    end
end
-- Create an entry for each provided key.
for i, key in ipairs(KEYS) do
    redis.call("set", key, ARGV[1], "PX", ARGV[2])
end
-- Return the number of entries added.
return #KEYS"""
ELSEWHERE: dict[str, list[Line]] = {
    "redsync, Go": [
        *["SET lock mine PX 100000", script(REDSYNC_TOUCH, "lock", "mine", 200_000, keys=1)],
        script(REDSYNC_TOUCH, "lock", "another's", 200_000, keys=1),
        *[script(REDSYNC_DELETE, "lock", owner, keys=1) for owner in ("another's", "mine", "mine")],
    ],
    "Spring Integration, Java": [
        *[script(SPRING_OBTAIN, "lock", owner, 100_000, keys=1) for owner in ("mine", "mine", "another's")],
        *[script(SPRING_RELEASE, "lock", owner, "channel", keys=1) for owner in ("another's", "mine", "mine")],
    ],
    "Spring Cloud Gateway, Java": [script(SPRING_RATE, "tokens", "time", 1, 3, 1000, 1, keys=2) for _ in range(5)],
    "redlock, Node.js": [
        *[script(NODE_REDLOCK_ACQUIRE, "a", "b", "mine", 100_000, keys=2) for _ in range(2)],
        "MGET a b",
    ],
}


@each_protocol
@each(ELSEWHERE)
def test_scripts_of_libraries_elsewhere_answer_what_they_answer_on_valkey(
    server: Server, peer: Server, protocol: int, row: list[Line]
) -> None:
    assert_alike(server, peer, protocol, row)


# Queues.


@pytest.mark.slow
def test_celery_keeps_results_beside_another_broker(server: Server) -> None:
    app = Celery("application", broker="memory://", backend=url(server))

    @app.task(name="add")  # type: ignore[untyped-decorator]
    def add(left: int, right: int) -> int:
        return left + right

    with start_worker(app, perform_ping_check=False, pool="solo"):
        assert add.delay(1, 2).get(timeout=LEASE) == 3
        assert group(add.s(number, number) for number in range(3))().get(timeout=LEASE) == [0, 2, 4]


def test_huey_runs_tasks_and_keeps_results_as_strings(server: Server) -> None:
    queue = huey.RedisExpireHuey("queue", host="127.0.0.1", port=server.port)
    task = queue.task()(lambda a, b: a + b)
    result = task(1, 2)
    queue.execute(queue.dequeue())
    assert result.get() == 3


def schedule_with_huey(server: Server) -> None:
    queue = huey.RedisExpireHuey("queue", host="127.0.0.1", port=server.port)
    queue.task()(lambda: None).schedule(delay=LEASE)
    queue.execute(queue.dequeue())


def keep_results_of_huey(server: Server) -> None:
    queue = huey.RedisHuey("queue", host="127.0.0.1", port=server.port)
    result = queue.task()(lambda: None)()
    queue.execute(queue.dequeue())
    result.get()


def send_with_celery(server: Server) -> None:
    Celery("application", broker=url(server)).send_task("task")


def send_with_kombu(server: Server) -> None:
    make: Any = kombu.connection.Connection
    with make(url(server)) as connection:
        connection.SimpleQueue("queue").put("message")


def send_with_rq(server: Server) -> None:
    rq.Queue(connection=redis.Redis(port=server.port)).enqueue(len, "abc")


def send_with_dramatiq(server: Server) -> None:
    make: Any = dramatiq.brokers.redis.RedisBroker
    message: dramatiq.Message[None] = dramatiq.Message("default", "actor", (), {}, {})
    make(url=url(server)).enqueue(message)


def limit_with_pyrate(server: Server) -> None:
    rates = [pyrate_limiter.Rate(1, pyrate_limiter.Duration.HOUR)]
    bucket = pyrate_limiter.RedisBucket.init(rates, redis.Redis(port=server.port), "bucket")
    pyrate_limiter.Limiter(bucket).try_acquire("user", blocking=False)


def keep_a_dictionary_of_pottery(server: Server) -> None:
    pottery.RedisDict(a=1, redis=redis.Redis(port=server.port), key="dictionary")


@pytest.mark.snugly_only
@pytest.mark.parametrize(
    ("use", "missing"),
    [
        (schedule_with_huey, "ZADD"),
        (keep_results_of_huey, "HMGET"),
        (send_with_celery, "SADD"),
        (send_with_kombu, "SADD"),
        (send_with_rq, "SADD"),
        (send_with_dramatiq, "Unknown command called from script"),
        (limit_with_pyrate, "ZREMRANGEBYSCORE"),
        (keep_a_dictionary_of_pottery, "HSET"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_what_wants_other_types_is_told_which_command_is_missing(
    server: Server, use: Callable[[Server], None], missing: str
) -> None:
    with pytest.raises(Exception, match=missing):
        use(server)
