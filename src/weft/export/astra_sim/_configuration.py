"""The small files of a bundle: configurations, and the script that runs it."""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np

from weft.arrays import Int64
from weft.export.astra_sim._shapes import Shape
from weft.export.astra_sim._traces import GROUP

MEMORY = '{"memory-type": "NO_MEMORY_EXPANSION"}\n'


def network_yml(shapes: Sequence[Shape]) -> str:
    """ASTRA-sim's analytical network file."""
    columns = {
        "topology": [shape.name for shape in shapes],
        "npus_count": [str(shape.size) for shape in shapes],
        "bandwidth": [_decimal(shape.gb) for shape in shapes],
        "latency": [_decimal(shape.ns) for shape in shapes],
    }
    units = {"bandwidth": "  # GB/s, 1 GB = 2^30 B", "latency": "  # ns"}
    return "".join(
        f"{name}: [ {', '.join(values)} ]{units.get(name, '')}\n"
        for name, values in columns.items()
    )


def _decimal(value: float) -> str:
    """All digits of a number and no exponent, which not every reader of YAML takes."""
    return np.format_float_positional(value, trim="-")


def system_json(kind: str, prefix: str) -> str:
    """ASTRA-sim's system file; the prefix is relative to the folder in which run.sh runs."""
    return _json(
        {
            "scheduling-policy": "FIFO",
            "preferred-dataset-splits": 1,
            f"{kind}-implementation-custom": [f"./{prefix}"],
        }
    )


def groups_json(ranks: Int64) -> str:
    """The process group that runs the algorithm, in ascending order."""
    return json.dumps({GROUP: ranks.tolist()}) + "\n"


def logical_json(npus: int) -> str:
    return _json({"logical-dims": [str(npus)]})


def _json(value: object) -> str:
    return json.dumps(value, indent=2) + "\n"


_RUN = """\
#!/bin/sh
# Runs this bundle: ./run.sh BINARY [OPTION OF ASTRA-SIM...], or ASTRA_SIM=BINARY ./run.sh
# ASTRA-sim ends with exit code 0 even if ranks hang, so the ranks that finish are counted.
set -eu
if [ $# -gt 0 ]; then
    binary=$1
    shift
else
    binary=${ASTRA_SIM:-}
fi
if [ -z "$binary" ]; then
    echo "usage: $0 BINARY, such as AstraSim_Analytical_Congestion_Aware" >&2
    exit 2
fi
case $binary in
    */*) binary=$(cd "$(dirname "$binary")" && pwd)/$(basename "$binary") ;;
esac
cd "$(dirname "$0")"

set_of= network=network.yml ranks=@RANKS@ expected='@PLANNED@@PREDICTED@'
@UNAWARE@
files=$((2 * ranks + 64))
open=$(ulimit -n)
if [ "$open" != unlimited ] && [ "$open" -lt "$files" ] && ! ulimit -n "$files"; then
    echo "$0: $files files must be open at once, but ulimit -n is $open" >&2
    exit 2
fi
if [ -f "${set_of}groups.json" ]; then
    set -- "--comm-group-configuration=./${set_of}groups.json" "$@"
fi
log=$(mktemp -d)
trap 'rm -rf "$log"' EXIT
status=0
"$binary" \\
    "--workload-configuration=./${set_of}workload" \\
    "--system-configuration=./${set_of}system.json" \\
    "--network-configuration=./$network" \\
    --remote-memory-configuration=./memory.json \\
    "--logging-folder=$log" "$@" >"$log/output" 2>&1 || status=$?
finished=$(grep -c 'sys\\[[0-9]*\\] finished, [0-9]* cycles' "$log/output" || true)
if [ "$status" -ne 0 ] || [ "$finished" -ne "$ranks" ]; then
    tail -n 20 "$log/output" >&2
    echo "$0: $finished of $ranks ranks finished, exit code $status" >&2
    exit 1
fi
latest=$(sed -n 's/.*\\] finished, \\([0-9]*\\) cycles.*/\\1/p' "$log/output" | sort -n | tail -n 1)
echo "all $ranks ranks finished; the last after $latest ns$expected"
"""

_UNAWARE = """\
case $(basename "$binary") in
    *[Uu]naware*) set_of=@SET@ network=unaware.yml ranks=@RANKS@ expected='@PLANNED@' ;;
esac
"""


def run_script(
    ranks: int, unaware: tuple[str, int] | None, planned: int | None, predicted: int | None
) -> str:
    """The script, with the time predicted for the congestion-aware backend.

    `unaware` is the set of traces for the other one and how many ranks it has, if there is one.
    """
    other = ""
    if unaware is not None:
        prefix, count = unaware
        other = _UNAWARE.replace("@SET@", prefix).replace("@RANKS@", str(count))
    words = {
        "@UNAWARE@\n": other,
        "@RANKS@": str(ranks),
        "@PLANNED@": "" if planned is None else f", planned {planned / 1000:.3f} ns",
        "@PREDICTED@": "" if predicted is None else f", predicted {predicted} ns",
    }
    script = _RUN
    for word, text in words.items():
        script = script.replace(word, text)
    return script
