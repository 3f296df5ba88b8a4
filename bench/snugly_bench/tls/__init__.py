"""The cost of TLS, beside the same server without it and beside Redis or Valkey: the benchmark `tls`."""
