-- The chosen tasks as rows of `tasks`, but for the bench's name and the snapshot.
WITH held AS (
    SELECT
        p.task_key, p.side,
        count(*)::INTEGER AS members,
        (count(*) FILTER (p."case" <> 'given'))::INTEGER AS held_out,
        list_sort(list(DISTINCT p.dtype)) AS dtypes,
        max(p.host_ratio) AS host_ratio, max(p.device_ratio) AS device_ratio, max(p.headroom) AS headroom
    FROM picked AS p
    GROUP BY p.task_key, p.side
),
models_of AS (
    SELECT p.task_key, p.side, count(DISTINCT s.config_hash)::INTEGER AS models, list_sort(list(DISTINCT s.family)) AS families
    FROM picked AS p
    JOIN sources AS s USING (root)
    GROUP BY p.task_key, p.side
)
SELECT
    c.side AS split,
    c.number,
    c.task_key AS structure_hash, c.template_hash, c.op_hash,
    c.stratum, c.kind, c.ops, c.op_mix, c.family, m.families, m.models,
    h.members, h.held_out, h.dtypes, c.templates::INTEGER AS templates, c.tail_share, c.rarity,
    h.host_ratio, h.device_ratio, h.headroom
FROM chosen AS c
JOIN held AS h USING (task_key, side)
JOIN models_of AS m USING (task_key, side)
ORDER BY split, number
