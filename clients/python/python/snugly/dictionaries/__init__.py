"""The dictionaries beside the data of one client's server: how they are found, kept, learned and let go.

`catalogue` says what is to be asked of the server, and when, without asking; `learning` says what is to be learned and
published. `ways` has the connections to ask by, and `keepers` does so: on a thread or as a task, and for readers that
wait. What is at hand and what was sampled is in the native module, where values are encoded and decoded.
"""
