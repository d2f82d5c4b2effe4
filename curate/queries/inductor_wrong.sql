-- Where is Inductor wrong?
--
-- Measured subgraphs that eager answers correctly at a stricter tolerance level than Inductor does, by at least $levels
-- levels, or whose outputs differ in kind. Levels run from -10 to 5; -5 is what torch.testing.assert_close asks; null
-- means correct at none. Errors are against float64, for inputs drawn as the recipes say.
-- param levels = 1: levels that Inductor must be behind eager
-- param rows = 20: subgraphs to show
SELECT
    subgraph_hash,
    device,
    mode,
    eager_t,
    inductor_t,
    eager_max_rel,
    inductor_max_rel,
    inductor_problem
FROM profiles
WHERE class = 'ok'
    AND (
        inductor_problem IS NOT NULL
        OR (reference IS NOT NULL AND coalesce(inductor_t, 6) - coalesce(eager_t, 6) >= $levels)
    )
ORDER BY coalesce(inductor_t, 6) - coalesce(eager_t, 6) DESC, inductor_max_rel DESC NULLS LAST, subgraph_hash
LIMIT $rows;
