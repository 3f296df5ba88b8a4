"""The transport of snugly's own clients: commands packed and replies read by the native module, values and all.

It takes valkey-py's clients and connections as they are made (pools, TLS, credentials, the handshake), and replaces
what is hot: packing, sending, receiving and parsing. What it does not do itself goes the way of valkey-py, and nobody
has to know which. `wire` says what is for this transport at all; `blocking` and `shared` are its two forms, for
synchronous clients and for asyncio, and `cluster` has the second for each node of a cluster.
"""
