"""The subcommands together, and what becomes of their errors."""

from __future__ import annotations

import sys
from importlib import import_module

import click

from weft.cli.printing import say_error, wants_json
from weft.errors import UnclearError, WeftError
from weft.quoting import sentence

COMMANDS = (
    *("synth", "compare", "verify", "show", "simulate", "convert", "topo", "export", "workload"),
    *("lower", "run", "probe", "lab"),
)


_SETTINGS = {"help_option_names": ["-h", "--help"], "show_default": True}


class _Commands(click.Group):
    """Subcommands, each of which is the function of that name in its module, loaded when used."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's own
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = getattr(import_module(f"weft.cli.{cmd_name}"), cmd_name)
        return command


@click.group(cls=_Commands, context_settings=_SETTINGS)
@click.version_option(package_name="weft")
def cli() -> None:
    """Synthesize the collective algorithm that fits your network, proved and bounded."""


def run(command: click.Command = cli) -> int:
    """Run the command and give its exit code; wrong input is one sentence and exit code 2.

    3 if it can be read in several ways.

    Raises
    ------
    KeyboardInterrupt
        It was interrupted.
    """
    try:
        code = command(standalone_mode=False)
    except click.exceptions.Abort:
        raise KeyboardInterrupt from None
    except click.ClickException as error:
        if wants_json():
            say_error(error.format_message())
        else:
            error.message = sentence(error.message)  # type: ignore[misc]  # its class sets it too
            error.show()
        return 2
    except BrokenPipeError:
        sys.stderr.close()
        return 141
    except WeftError as error:
        code = 3 if isinstance(error, UnclearError) else 2
        say_error(str(error), code)
        return code
    except MemoryError:
        say_error("not enough memory for this; try fewer chunks or NPUs")
        return 2
    return code if isinstance(code, int) else 0
