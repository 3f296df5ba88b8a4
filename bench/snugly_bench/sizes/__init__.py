"""Savings and costs of compression for values of each size and type, with advice.

Measured as `clients` measures: `command` only asks for other values. `advice` chooses from the numbers.
"""
