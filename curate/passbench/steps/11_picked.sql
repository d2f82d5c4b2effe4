-- picked: the members of each task. First one that gives the task its stratum; then by turns a dtype and a size class
-- that is not there yet, profiled ones before others. Tasks get their k-th member before any gets its next, until
-- rules.subgraphs are taken. Unprofiled members are at most rules.unprofiled_a_profiled times the profiled ones.
--
-- Held out: every member that is not profiled, and every third of the profiled ones.
CREATE OR REPLACE TABLE picked AS
WITH offered AS (
    SELECT
        m.*, c.number, c.stratum,
        coalesce(m.profiled AND CASE c.stratum WHEN 'device' THEN m.device_slower WHEN 'headroom' THEN m.has_headroom
                                               ELSE m.host_slower END, false) AS carries,
        md5(concat_ws(' ', 'member', rules.seed, m.subgraph_hash)) AS shuffle,
        count(*) FILTER (m.profiled) OVER (PARTITION BY m.side, m.task_key) AS profiled_members
    FROM members AS m
    JOIN chosen AS c ON c.task_key = m.task_key AND c.side = m.side
    CROSS JOIN rules
),
turned AS (
    SELECT
        *,
        row_number() OVER (PARTITION BY side, task_key ORDER BY carries DESC, profiled DESC, shuffle) = 1 AS leads,
        row_number() OVER (PARTITION BY side, task_key, profiled, dtype ORDER BY carries DESC, shuffle) AS dtype_turn,
        row_number() OVER (PARTITION BY side, task_key, profiled, size_class ORDER BY carries DESC, shuffle) AS size_turn
    FROM offered
),
queued AS (
    SELECT
        *,
        row_number() OVER (PARTITION BY side, task_key, profiled ORDER BY leads DESC, dtype_turn, size_turn, shuffle) AS turn
    FROM turned
),
lined AS (
    SELECT
        q.*,
        row_number() OVER (PARTITION BY q.side, q.task_key ORDER BY leads DESC, turn, profiled DESC, shuffle) AS place
    FROM queued AS q, rules
    WHERE q.profiled OR q.turn <= rules.unprofiled_a_profiled * q.profiled_members
),
taken AS (
    SELECT l.*
    FROM lined AS l, rules
    WHERE l.place <= rules.most_members
    QUALIFY l.side = 'train' OR row_number() OVER (PARTITION BY l.side ORDER BY l.place, l.number) <= rules.subgraphs
)
SELECT
    *,
    CASE WHEN profiled AND turn % 3 <> 0 THEN 'given'
         WHEN variant = 'given' THEN 'held-out'
         ELSE 'held-out ' || variant END AS "case"
FROM taken;
