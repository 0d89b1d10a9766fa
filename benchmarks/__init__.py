"""Figures beside the published ones: ``make bench``. Ratios and times, never asserts."""
