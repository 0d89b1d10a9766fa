"""Sends bytes between ranks of a lab by the addresses they are told: ``0>1:100000 2>3.1:5``.

``0>2@:1000`` sends to the address of the host instead of that of a way. Each transfer prints
``0>1:100000 SECONDS``, as the receiver saw it.
"""

from __future__ import annotations

import json
import os
import re
import socket
import sys
import threading
import time
from pathlib import Path

RANK = int(os.environ["WEFT_RANK"])
TOLD = json.loads(Path(os.environ["WEFT_ADDRESSES"]).read_text())


def ends(peer: int, way: str, *, host: bool) -> tuple[str, str]:
    if host:
        return TOLD["host"], TOLD["hosts"][peer]
    found = TOLD["peers"][str(peer)][int(way or 0)]
    return found["local"], found["remote"]


def receive(server: socket.socket, size: int, what: str) -> None:
    connection, _ = server.accept()
    start, left = time.monotonic(), size
    while left:
        data = connection.recv(min(left, 1 << 16))
        assert data, what
        left -= len(data)
    print(what, time.monotonic() - start, flush=True)


def send(local: str, remote: str, port: int, size: int) -> None:
    while True:
        try:
            connection = socket.create_connection((remote, port), source_address=(local, 0))
            break
        except OSError:
            time.sleep(0.02)
    connection.sendall(bytes(size))
    connection.shutdown(socket.SHUT_WR)
    connection.recv(1)


threads = []
for port, what in enumerate(sys.argv[1:], start=7000):
    match = re.fullmatch(r"(\d+)>(\d+)(?:\.(\d+))?(@?):(\d+)", what)
    assert match is not None
    src, dst, size = int(match[1]), int(match[2]), int(match[5])
    if src == RANK:
        local, remote = ends(dst, match[3], host=bool(match[4]))
        threads.append(threading.Thread(target=send, args=(local, remote, port, size)))
    if dst == RANK:
        local, _ = ends(src, match[3], host=bool(match[4]))
        server = socket.create_server((local, port))
        threads.append(threading.Thread(target=receive, args=(server, size, what)))
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
