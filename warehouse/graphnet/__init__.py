"""GraphRecords written as folders in GraphNet's sample layout, which PassNet's evaluator loads too."""
