-- Which operators must a compiler know first?
--
-- template_share is the share of templates that call the operator; covered is the share of templates for which this
-- operator and all those above it are enough.
--
-- param rows = 30: operators to show
WITH frequency AS (
    SELECT *, row_number() OVER (ORDER BY template_share DESC, weighted_calls DESC, target) AS rank FROM op_frequency()
),
needs AS (
    -- A graph is covered once the rarest of its operators is.
    SELECT w.graph_hash, max(f.rank) AS rank
    FROM graph_weights AS w
    JOIN graphs AS g USING (graph_hash)
    CROSS JOIN unnest(g.ops) AS u(target)
    JOIN frequency AS f USING (target)
    WHERE w.is_representative
    GROUP BY w.graph_hash
)
SELECT
    f.rank,
    f.target,
    o.family,
    f.template_share,
    f.calls,
    f.calls_in_models,
    round((SELECT count(*) FROM needs AS n WHERE n.rank <= f.rank) / (SELECT count(*) FROM needs), 4) AS covered
FROM frequency AS f
JOIN operators AS o USING (target)
ORDER BY f.rank
LIMIT $rows;
