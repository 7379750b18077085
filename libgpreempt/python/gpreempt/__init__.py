# SPDX-License-Identifier: MIT
"""Tell the GPU scheduler about this process: what its work is worth, and when work is about to come.

    import gpreempt

    gpreempt.priority("high")               # of the whole process
    gpreempt.hint(300)                      # GPU work comes in about 300 µs: less urgent work is put aside until then
    with gpreempt.at("realtime"):           # for a while; also `async with`, and as a decorator (`async def` too)
        ...
    application = gpreempt.WSGI(application)    # hints when a request arrives, long before its first kernel
    application = gpreempt.ASGI(application)

Everything is optional. In a process that was not started by `gpreempt run`, without the library libgpreempt or without a daemon every call does
nothing and returns at once; reason() says why, and so does the logger "gpreempt", once, at level INFO. Only wrong arguments raise an error.
The functions may be called from any thread. None waits for the daemon. Needs Python 3.8 and nothing else. libgpreempt(3) has the details.
"""
from __future__ import annotations

import contextlib
import ctypes
import errno
import functools
import inspect
import logging
import math
import os
import threading
from typing import Any, Awaitable, Callable, Iterable, MutableMapping, NamedTuple, Optional, Union, overload

__all__ = ["AHEAD_US", "ASGI", "State", "WSGI", "at", "hint", "prepare", "priority", "reason", "state"]

AHEAD_US = 300  # on CUDA a switch takes about 235 µs: docs/results/nvidia.md
NAMES = {"idle": 0, "low": 20, "normal": 50, "high": 80, "realtime": 99}
_HOUR_US = 3600e6
_LIBRARY = "libgpreempt.so.0"
_log = logging.getLogger("gpreempt")

Priority = Union[int, str]
Environ = MutableMapping[str, Any]
Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


class State(NamedTuple):
    """What the daemon has decided about this process."""

    priority: int
    weight: int
    queues: int  # GPU queues (on CUDA: contexts) that the daemon knows of
    closed: int  # of those that are put aside now
    deadline_us: float  # policy edf; 0: none
    budget_us: float


class _State(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_uint32),
        ("priority", ctypes.c_int32),
        ("weight", ctypes.c_uint32),
        ("connected", ctypes.c_uint32),
        ("mechanism", ctypes.c_uint32),
        ("queue_count", ctypes.c_uint32),
        ("closed_count", ctypes.c_uint32),
        ("reserved", ctypes.c_uint32),
        ("deadline_ns", ctypes.c_uint64),
        ("budget_ns", ctypes.c_uint64),
    ]


class _Library:
    """libgpreempt, looked for once, and why the last call did nothing."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.is_known = False
        self.hint: Optional[Callable[..., int]] = None
        self.set_priority: Optional[Callable[..., int]] = None
        self.get: Optional[Callable[..., int]] = None
        self.absent = ""
        self.reason: Optional[str] = None
        self.said: set[str] = set()

    def find(self) -> None:
        """A call without the library costs no more than a look at this."""
        with self.lock:
            if self.is_known:
                return
            name = os.environ.get("GPREEMPT_LIBRARY") or _LIBRARY
            try:
                # CDLL lets other threads run meanwhile: one that holds a lock of CUDA's may wait for the interpreter.
                library = ctypes.CDLL(name)
                hint_, set_priority, get = library.gpreempt_hint, library.gpreempt_set_priority, library.gpreempt_get
            except (OSError, AttributeError) as error:
                self.absent = (
                    "libgpreempt cannot be loaded (%s); install gpreempt, or name it in GPREEMPT_LIBRARY" % error
                )
            else:
                hint_.argtypes, hint_.restype = [ctypes.c_void_p, ctypes.c_uint64], ctypes.c_int
                set_priority.argtypes, set_priority.restype = [ctypes.c_void_p, ctypes.c_int], ctypes.c_int
                get.argtypes, get.restype = [ctypes.POINTER(_State)], ctypes.c_int
                self.hint, self.set_priority, self.get = hint_, set_priority, get
            self.is_known = True

    def failed(self, result: int) -> None:
        """Remembers why nothing was done, and tells the logger of each reason once."""
        if not self.hint:
            why = self.absent
        elif result == -errno.ENOTCONN:
            why = "no daemon schedules this process; start gpreemptd, and the program with `gpreempt run`"
        else:
            why = "the scheduler refused: %s" % os.strerror(-result)
        self.reason = why
        if why not in self.said:
            self.said.add(why)
            _log.info("gpreempt does nothing: %s", why)


_library = _Library()


def _call(name: str, *arguments: Any) -> bool:
    """Whether libgpreempt was told. Never raises: the application comes first."""
    try:
        if not _library.is_known:
            _library.find()
        function = getattr(_library, name)
        result = function(*arguments) if function else -errno.ENOSYS
    except Exception as error:  # pylint: disable=broad-except
        _library.reason = "an error in gpreempt itself: %s" % error
        return False
    if result:
        _library.failed(result)
        return False
    _library.reason = None
    return True


def _us(value: float) -> int:
    if (
        isinstance(value, bool)
        or not isinstance(value, (int, float))
        or not math.isfinite(value)
        or not 0 <= value <= _HOUR_US
    ):
        raise ValueError("a hint is so many microseconds ahead: 0 to an hour, not %r" % (value,))
    return int(value * 1000)


def _number(value: Priority) -> int:
    if isinstance(value, str) and value in NAMES:
        return NAMES[value]
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= 99:
        raise ValueError("a priority is 0 to 99 or one of %s, not %r" % (", ".join(NAMES), value))
    return value


def hint(ahead_us: float = AHEAD_US) -> bool:
    """GPU work of this process comes in so many microseconds: less urgent work is put aside by then. Whether somebody was told.

    On CUDA 250 to 800 µs ahead is best, and more than 1000 does nothing yet. A hint that no work follows costs the others about a millisecond. The first one in a CUDA context takes
    milliseconds: see prepare().
    """
    return _call("hint", None, _us(ahead_us))


def prepare() -> bool:
    """Makes what the first hint needs. To be called once the model is loaded, before the first request."""
    return hint(0)


@overload
def priority() -> Optional[int]:
    ...


@overload
def priority(value: Priority) -> bool:
    ...


def priority(value: Optional[Priority] = None) -> Union[int, bool, None]:
    """Without a value: what holds now, or None where nobody schedules this process. With one (0 to 99, or a name): sets it for the whole process; whether it was taken.

    What is set holds a moment later, and for a daemon that is started later, too. The daemon cuts it down to the user's ceiling.
    """
    if value is not None:
        return _call("set_priority", None, _number(value))
    now = state()
    return None if now is None else now.priority


def state() -> Optional[State]:
    """What holds now; None where nobody schedules this process."""
    found = _State(size=ctypes.sizeof(_State))
    if not _call("get", ctypes.byref(found)):
        return None
    return State(
        found.priority,
        found.weight,
        found.queue_count,
        found.closed_count,
        found.deadline_ns / 1000,
        found.budget_ns / 1000,
    )


def reason() -> Optional[str]:
    """Why the last call did nothing, as a sentence; None: it was told to the scheduler."""
    return _library.reason


class _Block:  # pylint: disable=too-few-public-methods
    """One block that is under way. Two of the same priority are not equal."""

    def __init__(self, value: int) -> None:
        self.value, self.thread = value, threading.get_ident()


class _Wishes:
    """Blocks that are under way: the highest priority holds, and after the last one what was before."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.active: list[_Block] = []
        self.before = NAMES["normal"]

    @staticmethod
    def _now() -> int:
        held = priority()
        if held is not None:
            return held
        given = os.environ.get("GPREEMPT_PRIORITY", "")  # of `gpreempt run`
        return int(given) if given.isdecimal() and int(given) <= 99 else NAMES["normal"]

    def enter(self, value: int) -> _Block:
        block = _Block(value)
        with self.lock:
            if not self.active:
                self.before = self._now()
            self.active.append(block)
            self._tell()
        return block

    def leave(self, block: _Block) -> None:
        with self.lock:
            if block not in self.active:
                return  # begun before a fork
            self.active.remove(block)
            self._tell()

    def _tell(self) -> None:
        priority(max(block.value for block in self.active) if self.active else self.before)


_wishes = _Wishes()


def _after_fork() -> None:
    """In a child: other threads of the parent's are not here, so nobody would end their blocks or let their locks go."""
    global _wishes  # pylint: disable=global-statement
    _wishes, _library.lock = _Wishes(), threading.Lock()


os.register_at_fork(after_in_child=_after_fork)


class at(contextlib.ContextDecorator):  # pylint: disable=invalid-name # reads as a word: with gpreempt.at("high")
    """The process has this priority while the block runs; of several blocks, in any threads, the highest counts. ahead_us: hints at the beginning.

    The priority is that of the whole process. A block may be entered several times, also at once.
    """

    def __init__(self, value: Priority, ahead_us: Optional[float] = None) -> None:
        self._value = _number(value)
        self._ahead_us = ahead_us
        self._blocks: list[_Block] = []  # that are under way, in the order of their beginnings
        if ahead_us is not None:
            _us(ahead_us)

    def __call__(self, func: Callable[..., Any]) -> Callable[..., Any]:
        """The block is the function's body: of a coroutine until it ends, not only until it has been made."""
        forms = (func, getattr(type(func), "__call__", None))  # the latter of an object that can be called
        if any(inspect.isgeneratorfunction(form) or inspect.isasyncgenfunction(form) for form in forms):
            raise self._refusal(func)
        if any(inspect.iscoroutinefunction(form) for form in forms):

            @functools.wraps(func)
            async def inner_async(*arguments: Any, **named: Any) -> Any:
                async with self:
                    return await func(*arguments, **named)

            return inner_async

        @functools.wraps(func)
        def inner(*arguments: Any, **named: Any) -> Any:
            with self:
                result = func(*arguments, **named)
            # What other decorators hide shows in the result. A coroutine of types.coroutine() is a generator as well.
            if inspect.isawaitable(result):
                return self._hold(result)
            if inspect.isgenerator(result) or inspect.isasyncgen(result):
                if inspect.isgenerator(result):
                    result.close()
                raise self._refusal(func)
            return result

        return inner

    async def _hold(self, result: Awaitable[Any]) -> Any:
        async with self:
            return await result

    @staticmethod
    def _refusal(func: Callable[..., Any]) -> TypeError:
        return TypeError(
            "gpreempt.at() cannot decorate the generator %s, whose body runs in pieces; use `with gpreempt.at(...)` inside it"
            % getattr(func, "__qualname__", func)
        )

    def __enter__(self) -> "at":
        self._blocks.append(_wishes.enter(self._value))
        if self._ahead_us is not None:
            hint(self._ahead_us)
        return self

    def __exit__(self, *_: Any) -> None:
        # The last one of this thread. In a forked child another thread may be inside a block of the child's own.
        thread, blocks = threading.get_ident(), list(self._blocks)
        for block in [one for one in reversed(blocks) if one.thread == thread] + blocks[::-1]:
            with contextlib.suppress(ValueError):  # another thread ended this one meanwhile
                self._blocks.remove(block)
                _wishes.leave(block)
                return

    async def __aenter__(self) -> "at":
        return self.__enter__()

    async def __aexit__(self, *_: Any) -> None:
        self.__exit__()


class _Hinter:
    """When a request is worth a hint."""

    def __init__(self, ahead_us: float, when: Optional[Callable[[Any], bool]]) -> None:
        _us(ahead_us)
        self.ahead_us, self.when, self.is_said = ahead_us, when, False

    def arrived(self, request: Any) -> None:
        try:
            wanted = self.when is None or self.when(request)
        except Exception:  # pylint: disable=broad-except # a request is worth more than its hint
            wanted = False
            if not self.is_said:
                self.is_said = True
                _log.exception("gpreempt: the function that decides about hints failed; such requests get none")
        if wanted:
            hint(self.ahead_us)


class _Middleware:
    """What WSGI and ASGI share. Frameworks give the application as app=; application= was the name in the first manual page."""

    def __init__(
        self,
        app: Optional[Callable[..., Any]] = None,
        ahead_us: float = AHEAD_US,
        when: Optional[Callable[[Any], bool]] = None,
        *,
        application: Optional[Callable[..., Any]] = None,
    ) -> None:
        self._hinter = _Hinter(ahead_us, when)
        given = app if application is None else application
        if given is None or (app is not None and application is not None):
            raise TypeError(
                "gpreempt.%s() takes one application: as the first argument, as app= or as application="
                % type(self).__name__
            )
        self.app: Callable[..., Any] = given

    @property
    def application(self) -> Callable[..., Any]:
        """Another name of app."""
        return self.app


class WSGI(_Middleware):
    """WSGI middleware: hints when a request arrives. ahead_us: from then to its first kernel. when: whether a request (its environ) uses the GPU; without it each does."""

    def __call__(self, environ: Environ, start_response: Callable[..., Any]) -> Iterable[bytes]:
        self._hinter.arrived(environ)
        answer: Iterable[bytes] = self.app(environ, start_response)
        return answer


class ASGI(_Middleware):
    """ASGI middleware: hints when an HTTP request or a message of a WebSocket arrives, and calls prepare() when the application has started. Arguments as of WSGI; when gets the scope."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def receive_message() -> Message:
            message = await receive()
            if message.get("type") == "websocket.receive":
                self._hinter.arrived(scope)
            return message

        async def send_started(message: Message) -> None:
            if message.get("type") == "lifespan.startup.complete":
                prepare()
            await send(message)

        kind = scope.get("type")
        if kind == "http":
            self._hinter.arrived(scope)
            await self.app(scope, receive, send)
        elif kind == "websocket":
            await self.app(scope, receive_message, send)
        elif kind == "lifespan":
            await self.app(scope, receive, send_started)
        else:
            await self.app(scope, receive, send)
