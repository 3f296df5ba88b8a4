"""The dictionaries beside the data of one client's server: how they are found, kept and let go.

`catalogue` says what is to be asked of the server, and when, without asking; `ways` has the connections to ask it by,
and `keepers` does so: on a thread or as a task, and for readers that wait. What is at hand is in the native module,
where values are encoded and decoded.
"""
