-- ranked: the groups that are left, in the order in which they are taken inside their side and stratum.
--
-- By turns: the first group of every operator sequence and of every model family before a second one of either, groups
-- with enough members before others; among equals the first of every operator mix and size class before a second one, and
-- what is equal by all that by a hash of the seed. `family`: of the families that hold a group, the one with the fewest.
CREATE OR REPLACE TABLE ranked AS
WITH held AS (
    SELECT DISTINCT m.task_key, m.side, s.family
    FROM members AS m
    JOIN sources AS s ON s.root = m.root
),
crowd AS (
    SELECT h.family, g.side, count(*) AS groups
    FROM held AS h
    JOIN groups AS g ON g.task_key = h.task_key AND g.side = h.side AND g.dropped_by IS NULL
    GROUP BY h.family, g.side
),
homes AS (
    SELECT h.task_key, h.side, arg_min(h.family, (c.groups, h.family)) AS family, list(h.family ORDER BY h.family) AS families
    FROM held AS h
    JOIN crowd AS c ON c.family = h.family AND c.side = h.side
    GROUP BY h.task_key, h.side
),
open AS (
    SELECT
        g.* EXCLUDE (dropped_by, in_tail), h.family, h.families,
        g.available >= rules.subgraphs / rules.tasks AS is_roomy,
        md5(concat_ws(' ', 'group', rules.seed, g.task_key)) AS shuffle
    FROM groups AS g
    JOIN homes AS h ON h.task_key = g.task_key AND h.side = g.side
    CROSS JOIN rules
    WHERE g.dropped_by IS NULL
),
by_sequence AS (
    SELECT *, row_number() OVER (PARTITION BY side, stratum, op_hash ORDER BY is_roomy DESC, shuffle) AS sequence_turn FROM open
),
by_family AS (
    SELECT *, row_number() OVER (PARTITION BY side, stratum, family ORDER BY sequence_turn, is_roomy DESC, shuffle) AS family_turn
    FROM by_sequence
),
by_mix AS (
    SELECT *, row_number() OVER (PARTITION BY side, stratum, op_mix ORDER BY greatest(sequence_turn, family_turn), is_roomy DESC, shuffle) AS mix_turn
    FROM by_family
),
by_size AS (
    SELECT *, row_number() OVER (PARTITION BY side, stratum, size_class ORDER BY greatest(sequence_turn, family_turn), is_roomy DESC, mix_turn, shuffle) AS size_turn
    FROM by_mix
)
SELECT
    *,
    row_number() OVER (
        PARTITION BY side, stratum
        ORDER BY greatest(sequence_turn, family_turn), is_roomy DESC, mix_turn, size_turn, shuffle
    ) AS place
FROM by_size;
