"""A Hub on the loopback device, and what the source `hub` promises of it."""
