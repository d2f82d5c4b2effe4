"""From a model's name to its computation graphs: sources, building without weights, capture, workers."""
