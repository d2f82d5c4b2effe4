"""PassBench from a snapshot: which subgraphs become tasks, why the others do not, and the folder the judge reads."""
