"""A leaderboard as static pages: what scores and evaluations of a warehouse say, and nothing that they do not."""
