"""A soak: mixed load in all protocols for minutes, while servers are disturbed in every way, and accounts of it.

    PYTHONPATH=tests python -m soak --seconds 600 --seed 1      # or: make soak

Modules use each other from the top down:

- `run` starts the servers, load and disturbances, ends them, and settles the accounts; `report` prints how it goes
- `plan` decides from the seed who is disturbed when, by the table of `disturbances`
- `watch` asks every server for a PING, looks at its memory, and reads its log
- `audit` reads every key back, from a server, one that is started again, or the file of BGSAVE
- `disturbances` is the table of what `strangers` do, who are clients that misbehave, and `keepers`, who run a server;
  each is given a `scene`, and keepers choose from `settings`
- `writer` sends the load of one connection, which `resp_loads` and `memcached_loads` make up
- `instances` are the servers, each with a situation of its own, and the errors that are expected in it
- `links` speak a protocol over a port, TLS or a path
- `ledger` knows what each writer has written, and judges every reply
- `values` are made from a key and a version, so that a ledger keeps numbers
"""
