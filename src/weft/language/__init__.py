"""Algorithms written by hand: programs that copy and add chunks between buffers of ranks."""

from weft.language.programs import Chunk, Program, program

__all__ = ["Chunk", "Program", "program"]
