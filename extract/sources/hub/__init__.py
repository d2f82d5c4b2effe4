"""Models of a Hub as a source: listed once, one configuration asked for each group of alike models, no weights.

query (what is asked for) -> client (polite requests) -> crawl (pages and configurations into the ledger) ->
groups and configurations (what is alike, and what shapes a graph) -> source (refs, build, inputs).
"""
