"""Which graphs are the same graph: canonical form, hashes, and the merge that keeps one of each."""
