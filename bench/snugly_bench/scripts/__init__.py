"""The cost of scripts beside Valkey: the benchmark `scripts`."""
