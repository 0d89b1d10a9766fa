"""Measurements and what NCCL chose are no networks; the refusal says what they are."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.topology.machines.reading import refused, write


@pytest.mark.parametrize(
    ("name", "text", "what"),
    [
        ("graph.xml", '<graphs version="1">\n <graph id="0"/>\n</graphs>\n', "NCCL_TOPO_DUMP_FILE"),
        ("log.txt", "gpu01:7:7 [0] NCCL INFO Bootstrap : Using eth0\n", "a log of NCCL; expected"),
        ("a.txt", "# nThread 1 nGpus 8\n#  size  time\n", "an output of nccl-tests"),
        ("b.txt", "#  size count time  algbw  busbw #wrong\n 8 2 1 2 3 0\n", "nccl-tests"),
        ("c.json", '{"version": 3, "nccl_version": "2.27"}', "an output of nccl-tests"),
        ("d.txt", "# OSU MPI Latency Test v7.5\n# Size\n1 16.3\n", "OSU micro-benchmarks"),
        ("e.txt", " #bytes  #iterations  BW peak\n 2 5000 0.1\n", "an output of perftest"),
        ("f.txt", "    RDMA_Write BW Test\n Device : mlx5_0\n", "an output of perftest"),
        ("g.txt", "memcpy CE GPU(row) -> GPU(column)\n 0 1\n", "an output of nvbandwidth"),
        ("h.txt", "P2P=Enabled Latency (P2P Writes) Matrix (us)\n", "p2pBandwidthLatencyTest"),
    ],
)
def test_the_refusal_says_what_it_is(name: str, text: str, what: str, tmp_path: Path) -> None:
    sentence = refused(write(tmp_path, text, name))
    assert what in sentence
    assert "neither Weft's own" not in sentence
