"""More values than memory, beside memcached with its external storage: the benchmark `extstore`."""
