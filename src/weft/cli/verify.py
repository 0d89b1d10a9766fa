"""``weft verify``: judge a saved algorithm."""

from __future__ import annotations

import click


@click.command()
@click.argument("folder", metavar="DIR")
@click.option("--json", "as_json", is_flag=True, help="Print the verdict as JSON.")
def verify(folder: str, as_json: bool) -> None:
    """Judge the algorithm saved in DIR: exit code 0 if right, 1 and the violation if not."""
    from weft.api import load
    from weft.cli import progress
    from weft.verify import verify as judge

    verdict = progress.run("verifying", lambda _report: judge(load(folder)))
    if as_json:
        import dataclasses
        import json

        click.echo(json.dumps({"folder": folder, **dataclasses.asdict(verdict)}, indent=2))
    else:
        click.echo(f"{folder}: {'verified' if verdict else verdict.violation}")
    if not verdict:
        raise click.exceptions.Exit(1)
