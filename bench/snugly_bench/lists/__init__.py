"""Long lists whose nodes in the middle are compressed, beside valkey-server with and without compression."""
