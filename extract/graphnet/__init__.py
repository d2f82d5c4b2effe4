"""Published graphs in GraphNet's folder layout, read as syntax and made into GraphRecords. Nothing in them runs."""
