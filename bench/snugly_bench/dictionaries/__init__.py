"""Savings and costs of dictionaries that the server has learned by itself, for values that it has not learned from."""
