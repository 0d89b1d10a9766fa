"""The ``weft`` command: one module a subcommand. They parse, call the API and print."""

from __future__ import annotations

import os
import sys

from weft.cli.interrupts import farewell, heed_termination

__all__ = ["main"]


def main() -> None:
    """Run the command; see `weft.cli.commands.run`."""
    try:
        heed_termination()
        # Nothing is multiplied that is worth a thread a core, and threads may be few.
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
        from weft.cli.commands import run  # takes a while, and may be interrupted

        code = run()
    except KeyboardInterrupt:
        code = farewell()
    sys.exit(code)
