"""Print Weft's figures beside those published for, or measured with, other tools.

``python -m benchmarks [NAME ...] [--long]`` prints the named tables, or those of the named suite;
without a name all of them, in a short form. Pages of the documentation are written if named.
"""

from __future__ import annotations

import argparse

from rich.console import Console
from rich.table import Table

from benchmarks import chunks, compare, convert, pccl, scale, simulate, tacos
from benchmarks.tables import Extent

SUITES = {"tacos": tacos, "pccl": pccl, "convert": convert, "simulate": simulate, "chunks": chunks}
TABLES = {name: table for suite in SUITES.values() for name, table in suite.TABLES.items()}
PAGES = {"compare": compare.write, "scale": scale.write}


def main() -> None:
    """Print the tables asked for on the command line."""
    parser = argparse.ArgumentParser("python -m benchmarks", description=__doc__)
    known = [*SUITES, *TABLES, *PAGES]
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(known))
    parser.add_argument("--long", action="store_true", help="with what takes very long")
    asked = parser.parse_args()
    if unknown := set(asked.names) - set(known):
        parser.error(f"no table {', '.join(sorted(unknown))}")
    extent = Extent.LONG if asked.long else Extent.USUAL if asked.names else Extent.SHORT
    for suite, module in SUITES.items():
        names = [n for n in module.TABLES if not asked.names or {n, suite} & set(asked.names)]
        if names:
            print(module.__doc__)
        for name in names:
            show(name, extent)
    for name in asked.names:
        if name in PAGES:
            PAGES[name]()


def show(name: str, extent: Extent) -> None:
    """Print one table."""
    rows = TABLES[name](extent)
    table = Table(*next(rows), title=f"{name}: {TABLES[name].__doc__}", title_justify="left")
    for row in rows:
        table.add_row(*row)
    Console(width=160).print(table)


if __name__ == "__main__":
    main()
