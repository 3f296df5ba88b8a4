"""Client libraries beside each other, in processes of their own, on one server.

`command` and `options` read what is asked for, `plan` says what is measured in which order, `run` asks `fleet` for it,
whose processes run `worker` with the libraries of `peers`; `aims` judges what was found. Drawing is for `report`.
"""
