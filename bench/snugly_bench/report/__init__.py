"""Draws what was measured, from the file of results alone. Measures nothing, and asks no server."""
