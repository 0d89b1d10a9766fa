"""The ``weft`` command: one module a subcommand. They parse, call the API and print."""

from __future__ import annotations

import sys

from weft.cli.interrupts import farewell, heed_termination

__all__ = ["main"]


def main() -> None:
    """Run the command; see `weft.cli.commands.run`."""
    try:
        heed_termination()
        from weft.cli.commands import run  # takes a while, and may be interrupted

        code = run()
    except KeyboardInterrupt:
        code = farewell()
    sys.exit(code)
