"""snugly over memcached's protocol, beside memcached: the benchmark `memcached`."""
