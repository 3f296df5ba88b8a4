"""What compression saves and costs for values of each size and type, and what is to be chosen for them.

Measured as `clients` measures: `command` only asks for other values. `advice` chooses from the numbers.
"""
