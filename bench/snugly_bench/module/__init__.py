"""valkey-server with the module that compresses strings, beside the same without: the benchmark `module`."""
