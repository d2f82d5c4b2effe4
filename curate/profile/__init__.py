"""Profiling of subgraphs on a worker machine: torch, pyarrow, xxhash and the standard library, nothing else."""
