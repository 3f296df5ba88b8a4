"""Compression that the server chooses by itself, beside each choice that people could make, on mixed values."""
