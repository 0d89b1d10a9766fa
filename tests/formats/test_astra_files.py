"""The script and the small files of a bundle, and which networks ASTRA-sim has names for."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from tests.cli.command import refused
from tests.cli.command import weft as command

import weft
from weft.export.astra_sim import export
from weft.export.astra_sim._shapes import shapes_of
from weft.topology import Topology, load_topology

# Stands for ASTRA-sim: takes its options, runs the model and prints its lines.
BINARY = f"""#!{sys.executable}
import sys
from pathlib import Path
sys.path.insert(0, {str(Path(__file__).parents[2])!r})
from tests.formats.astra_model import run_bundle
options = dict(word[2:].split("=", 1) for word in sys.argv[1:])
which = Path(options["workload-configuration"]).name.removesuffix("workload")
assert Path(options["system-configuration"]).name == which + "system.json"
assert Path(options["remote-memory-configuration"]).exists()
assert Path(options["logging-folder"]).is_dir()
groups = options.get("comm-group-configuration")
assert (groups is not None) == Path(which + "groups.json").exists()
run = run_bundle(Path.cwd(), network=Path(options["network-configuration"]).name, which=which)
if options.get("hang"):
    run.finish.popitem()
for rank, time in run.finish.items():
    print(f"[workload] [info] sys[{{rank}}] finished, {{time}} cycles, exposed communication 0.")
if options.get("fail"):
    sys.exit(3)
"""


def binary(folder: Path, name: str = "AstraSim_Analytical_Congestion_Aware") -> Path:
    path = folder / name
    path.write_text(BINARY)
    path.chmod(0o755)
    return path


def run(*args, cwd=None, **environment):
    return subprocess.run(
        [*map(str, args)],
        capture_output=True,
        text=True,
        check=False,
        cwd=cwd,
        timeout=600,
        env={**os.environ, **environment},
    )


@pytest.fixture
def bundle(tmp_path):
    result = weft.synthesize("ring:4*switch:2", "all-gather", "1MiB")
    export(result.algorithm, tmp_path / "out")
    moved = tmp_path / "a place with spaces"
    (tmp_path / "out").rename(moved)  # a bundle may be moved
    return moved


def test_the_script_runs_a_bundle_from_anywhere(bundle, tmp_path):
    found = binary(tmp_path)
    done = run(bundle / "run.sh", f"./{found.name}", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("all 12 ranks finished; the last after ")
    assert re.search(r" ns, planned [0-9.]+ ns, predicted [0-9]+ ns$", done.stdout.strip())
    again = run("./run.sh", cwd=bundle, ASTRA_SIM=str(found))
    assert again.stdout == done.stdout


def test_the_unaware_backend_gets_its_own_network(bundle, tmp_path):
    done = run(bundle / "run.sh", binary(tmp_path, "AstraSim_Analytical_Congestion_Unaware"))
    assert done.stdout.startswith("all 8 ranks finished; "), done.stderr
    # The prediction is of the other backend.
    assert re.search(r" ns, planned [0-9.]+ ns$", done.stdout.strip())


@pytest.mark.parametrize(
    ("option", "said"), [("--hang=1", "11 of 12"), ("--fail=1", "exit code 3")]
)
def test_a_hang_is_an_error(bundle, tmp_path, option, said):
    done = run(bundle / "run.sh", binary(tmp_path), option)
    assert done.returncode == 1
    assert done.stdout == ""
    assert said in done.stderr


def test_the_script_wants_a_binary(bundle):
    done = run(bundle / "run.sh", ASTRA_SIM="")
    assert done.returncode == 2
    assert "usage: " in done.stderr


def test_a_group_is_handed_over(tmp_path):
    result = weft.synthesize("mesh:3x3", "all-reduce", "1MiB", group=[1, 0], relay=False)
    export(result.algorithm, tmp_path / "out")
    assert json.loads((tmp_path / "out/groups.json").read_text()) == {"1": [0, 1]}
    assert run(tmp_path / "out/run.sh", binary(tmp_path)).returncode == 0


@pytest.mark.parametrize(
    ("spec", "shapes"),
    [
        ("ring:5", "Ring 5"),
        ("ring:3", "FullyConnected 3"),
        ("ring:2", "FullyConnected 2"),
        ("fc:6", "FullyConnected 6"),
        ("switch:7", "Switch 7"),
        ("torus:4x5", "Ring 4, Ring 5"),
        ("hypercube:3", "FullyConnected 2, FullyConnected 2, FullyConnected 2"),
        ("fc:4*switch:2*ring:5", "FullyConnected 4, Switch 2, Ring 5"),
        ("switch:2*switch:2", "Switch 2, Switch 2"),
        ("mesh:3x3", None),
        ("line:4", None),
        ("dgx1", None),
        ("leaf-spine:2x2x1", None),
        ("ring:1", None),
    ],
)
def test_networks_that_have_a_name(spec, shapes):
    found = shapes_of(load_topology(spec))
    assert (found and ", ".join(f"{s.name} {s.size}" for s in found)) == shapes


def test_a_network_with_one_other_link_has_no_name():
    network = load_topology("ring:5").with_link(3, 4, latency=500_001, both=False)
    assert shapes_of(network) is None
    parallel = Topology.from_links("double", 2, [0, 0, 1], [1, 1, 0], 1, 1)
    assert shapes_of(parallel) is None


def test_written_networks_read_back(tmp_path):
    network = load_topology("fc:4*ring:5", "50GiB/s,12.5GB/s", "0.5us,700ns")
    export(weft.synthesize(network, "all-gather", "1MiB").algorithm, tmp_path / "out")
    assert yaml.safe_load((tmp_path / "out/unaware.yml").read_text()) == {
        "topology": ["FullyConnected", "Ring"],
        "npus_count": [4, 5],
        "bandwidth": [50, 12.5e9 / (1 << 30)],
        "latency": [500, 700],
    }
    again = load_topology(str(tmp_path / "out/unaware.yml"))
    assert (again.bandwidth == network.bandwidth).all()
    assert (again.latency == network.latency).all()


def test_ns3_lists_cables(tmp_path):
    export(weft.synthesize("switch:3", "all-gather", "1MiB").algorithm, tmp_path / "out")
    network = load_topology("switch:3")
    rate, delay = 8 * network.bandwidth[0], network.latency[0] // 1000
    assert (tmp_path / "out/ns3-topology.txt").read_text() == "4 1 3\n3\n" + "".join(
        f"{npu} 3 {rate}bps {delay}ns 0\n" for npu in range(3)
    )
    config = (tmp_path / "out/ns3-config.txt").read_text().splitlines()
    assert [line.split()[:3] for line in config[1:]] == [
        [name, "1", str(rate)] for name in ("KMAX_MAP", "KMIN_MAP", "PMAX_MAP")
    ]
    logical = json.loads((tmp_path / "out/ns3-logical.json").read_text())
    assert logical == {"logical-dims": ["3"]}


def test_the_command(tmp_path):
    made = ("synth", "ring:4*switch:2", "broadcast", "--size", "1MiB", "-o", "traces")
    assert command(*made, cwd=tmp_path).returncode == 0
    done = command("export", "astra-sim", "traces", "-o", "out", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "run.sh PATH/AstraSim_Analytical_Congestion_Aware" in done.stdout
    assert "- the 4 switches are ranks" in done.stdout
    done = command("export", "astra-sim", "traces", "-o", "out", "--json", cwd=tmp_path)
    found = json.loads(done.stdout)
    assert (found["ranks"], found["collective"], found["unaware"]) == (12, "all-gather", True)
    text = (tmp_path / "out/README.txt").read_text()
    assert all(note in text for note in found["notes"])


def test_the_command_takes_what_weft_convert_takes(tmp_path):
    ring = Path(__file__).parents[1] / "data" / "astra" / "ar_ring_8"
    given = ("export", "astra-sim", str(ring), "-o", "out", "--topology", "ring:8")
    assert "name it with --collective" in refused(*given, cwd=tmp_path)
    done = command(*given, "--collective", "all-reduce", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "out/run.sh").exists()


def test_the_command_says_what_is_wrong(tmp_path):
    made = ("synth", "ring:4", "all-gather", "--size", "1MiB", "-o", "traces")
    assert command(*made, cwd=tmp_path).returncode == 0
    (tmp_path / "full").mkdir()
    (tmp_path / "full/notes.txt").write_text("")
    to = ("export", "astra-sim", "traces", "-o")
    assert "holds notes.txt" in refused(*to, "full", cwd=tmp_path)
    assert "--output is empty" in refused(*to, "", cwd=tmp_path)
    assert "made for ring:4" in refused(*to, "out", "--topology", "ring:4", cwd=tmp_path)
    assert "go with --topology" in refused(*to, "out", "--latency", "1us", cwd=tmp_path)
    assert "cannot read" in refused("export", "astra-sim", "no", "-o", "out", cwd=tmp_path)
    assert not (tmp_path / "out").exists()
