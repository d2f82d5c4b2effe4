"""What is refused, by which layer, and under which name."""
