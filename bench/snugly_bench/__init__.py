"""Benchmarks of snugly beside its peers: one harness, one schema of results.

    python -m snugly_bench --help

What measures hands samples to `results`, which finds medians, ratios and whether aims were met, and knows nothing of
how it was measured.
"""
