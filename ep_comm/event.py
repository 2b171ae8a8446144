"""EventOverlap: what an asynchronous call returns, and the work it leaves for later.

The stream of a CPU buffer is one worker thread, its events are futures; on a device they are the
device's own. A hook holds the deferred epilogue: it is taken out *before* it runs, so a wait inside
it is safe and a failing hook is not tried again.

Source: host tests of DeepEP-Ascend's event module, in our own words.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Any, Protocol

from ascendkit.errors import bad_value

Hook = Callable[[], Any]


class Native(Protocol):
    """Something that can be waited for."""

    def wait(self) -> None:
        """Block the caller (or its stream) until the work before the event is done."""
        ...


class FutureEvent:
    """The event of a worker thread; waiting raises what the work raised."""

    def __init__(self, future: Future[Any]) -> None:
        self._future = future

    def wait(self) -> None:
        """Block until the work is done."""
        self._future.result()


class DeviceEvent:
    """An event recorded on the current stream of a device."""

    def __init__(self, device: str) -> None:
        import torch

        self._device = torch.get_device_module(device)
        self._event = self._device.Event()
        self._event.record()

    def wait(self) -> None:
        """Hold the current stream, not the host."""
        self._device.current_stream().wait_event(self._event)


class DoneEvent:
    """Nothing is left to wait for."""

    def wait(self) -> None:
        """Return at once."""


class EventOverlap:
    """An event, and what is to run after the first wait for it.

    Args:
        event: None for an event that is not there; waiting then only runs the hook.
        extra_tensors: kept alive as long as the event.
    """

    def __init__(self, event: Native | None = None, extra_tensors: Any = None) -> None:
        self.event = event
        self.extra_tensors = extra_tensors
        self._hook: Hook | None = None
        self._release = False

    def register_hook_after_wait(self, hook: Hook) -> None:
        """Run ``hook`` after the next wait, whose result becomes the wait's.

        Raises ValueError while another hook is registered.
        """
        if self._hook is not None:
            raise bad_value("EventOverlap hook", "a second hook", "one at a time: wait() first")
        self._hook = hook

    def current_stream_wait(self, release_handle: bool = False) -> Any:
        """Wait, then run the hook once; returns what it returns, None without one.

        Args:
            release_handle: drop the event and the tensors it keeps alive.
        """
        if self.event is not None:
            self.event.wait()
        hook, self._hook = self._hook, None
        try:
            return None if hook is None else hook()
        finally:
            if release_handle:
                self.event = self.extra_tensors = None

    wait = current_stream_wait

    def __call__(self, release_handle: bool = False) -> EventOverlap:
        """``with event(release_handle=True): ...``"""
        self._release = release_handle
        return self

    def __enter__(self) -> EventOverlap:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.current_stream_wait(self._release)


class CommStream:
    """The order of a buffer's communication: one worker thread on CPUs, the caller on devices."""

    def __init__(self, name: str, device: str) -> None:
        self._device = device
        self._name = name
        self._pool: ThreadPoolExecutor | None = None
        self._tail: Future[Any] | None = None
        self._lock = threading.Lock()

    def inline(self, work: Callable[[], Any]) -> Any:
        """Run ``work`` in the caller, after everything issued before it."""
        self.drain()
        return work()

    def issue(self, work: Callable[[], Any], after: EventOverlap | None) -> Native:
        """Run ``work`` in order and return its event at once."""
        if self._device != "cpu":
            if after is not None:
                after.current_stream_wait()
            work()
            return DeviceEvent(self._device)
        with self._lock:
            if self._pool is None:
                self._pool = ThreadPoolExecutor(1, self._name)
            self._tail = self._pool.submit(self._after, work, after)
            return FutureEvent(self._tail)

    def event(self) -> Native:
        """An event behind everything issued so far."""
        if self._device != "cpu":
            return DeviceEvent(self._device)
        with self._lock:
            return DoneEvent() if self._tail is None else FutureEvent(self._tail)

    def drain(self) -> None:
        """Wait for everything issued; its errors belong to its own events."""
        with self._lock:
            tail = self._tail
        if tail is not None:
            tail.exception()

    def close(self) -> None:
        """End the worker thread."""
        if self._pool is not None:
            self._pool.shutdown()

    @staticmethod
    def _after(work: Callable[[], Any], after: EventOverlap | None) -> Any:
        if after is not None and after.event is not None:
            after.event.wait()
        return work()
