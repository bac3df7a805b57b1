"""The thread that a pipeline's calls for asyncio run on."""

import asyncio
import contextvars
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from . import _core


class CallThread:
    """One for all calls, which run one at a time: those that wait for their turn take none of asyncio's own threads. It
    begins with the first call and ends with this object, which it does not hold while idle."""

    def __init__(self) -> None:
        self._executor: ThreadPoolExecutor | None = None
        self._process = self._thread = 0

    def _call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        self._thread = threading.get_ident()
        return function(*arguments)

    def run(self, function: Callable[..., Any], *arguments: Any) -> asyncio.Future[Any]:
        """Raises Error on that thread itself, which would wait for ever."""
        if self._executor is None or self._process != os.getpid():  # the child of a fork() has no threads
            self._process, self._thread = os.getpid(), 0
            self._executor = ThreadPoolExecutor(1, "braid")
        if self._thread == threading.get_ident():
            raise _core.Error("a callback of this pipeline cannot call it: it is drawing")
        context = contextvars.copy_context()
        return asyncio.get_running_loop().run_in_executor(self._executor, context.run, self._call, function, *arguments)
