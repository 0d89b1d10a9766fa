"""Tests of readers of machines and fabrics."""
