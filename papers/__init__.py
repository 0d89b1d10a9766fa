"""Evaluations of papers, run again with Weft, and tables beside published figures.

``python -m papers --help`` lists them. Ratios and times, never asserts.
"""
