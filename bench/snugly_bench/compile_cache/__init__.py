"""What a compile cache keeps, compressed and not: the benchmark `compile-cache`."""
