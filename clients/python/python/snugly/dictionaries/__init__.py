"""The dictionaries beside the data of one client's server: how they are found, kept, learned and let go.

`tasks` says what is to be asked of the server, and when, without asking; `learning` says what is to be learned and
published. Both yield `effects`, which `managers` carries out over `connections`: on a thread or as a task, and for
readers that wait. The dictionaries and the samples are in the native module, which encodes and decodes values.
"""
