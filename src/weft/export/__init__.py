"""Bundles for other simulators: written, never read."""
