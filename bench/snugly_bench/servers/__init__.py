"""Servers beside each other, driven by programs of their own: `snugly bench` and redis-benchmark."""
