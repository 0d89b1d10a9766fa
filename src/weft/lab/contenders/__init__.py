"""Programs that run one collective in a lab, each with another library, all timed alike.

Each is started on every NPU: ``python -m weft.lab.contenders.mpi all-reduce 8388608``. Ranks wait
for each other, and report, at a gate that is no part of the network.
"""
