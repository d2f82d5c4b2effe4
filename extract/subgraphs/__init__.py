"""Subgraphs: pieces of a captured graph that run alone, and the proof that they compute what they did in it."""
