"""Client libraries for Java: runs the program that measures them on a server of its own."""
