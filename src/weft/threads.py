"""Independent calls on several threads: as many as the system grants, one if it grants no more."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import TypeVar

S = TypeVar("S")
T = TypeVar("T")

STARTING = threading.Lock()
"""Held while a thread begins: until it runs, the interpreter takes it for the one that began it,
and an exception that is set for that one would end the new thread, for which its starter waits."""


def in_threads(work: Callable[[S], T], items: Iterable[S], threads: int) -> list[T]:
    """What `work` makes of each item, in order, on up to so many threads, the caller's among them.

    Of errors the first in the order of the items is raised, once all threads have ended; no more
    calls are begun then.
    """
    todo = list(enumerate(items))
    size = len(todo)
    todo.reverse()  # they are taken from the end
    done: dict[int, T] = {}
    failures: dict[int, BaseException] = {}

    def body() -> None:
        while todo:
            try:
                number, item = todo.pop()
            except IndexError:  # another was quicker
                return
            try:
                done[number] = work(item)
            except BaseException as error:
                failures[number] = error
                todo.clear()

    helpers = []
    try:
        for _ in range(min(threads, size) - 1):
            helper = threading.Thread(target=body)
            with STARTING:
                helper.start()
            helpers.append(helper)
    except RuntimeError:
        pass  # no more threads to be had; those there are will do
    try:
        body()
    finally:
        todo.clear()
        for helper in helpers:
            helper.join()
    if failures:
        raise failures[min(failures)]
    return [done[number] for number in range(size)]
