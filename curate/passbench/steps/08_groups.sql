-- groups: sound members of one structure on one side: what could be a task. The first filter that a group fails is its
-- `dropped_by`:
--
--   frequent      its operator sequence is in the head of the frequency curve, not in the long tail
--   well_served   no member is slower under Inductor by a clock, or has headroom
--   straddling    models of both sides hold it, or its operator sequence is on the other side
--
-- The stratum is the first reason that holds for a profiled member: device, headroom, host.
CREATE OR REPLACE TABLE groups AS
WITH gathered AS (
    SELECT
        task_key, side,
        any_value(task_template) AS template_hash, any_value(task_op_hash) AS op_hash, min(kind) AS kind,
        count(*) FILTER (profiled) AS profiled_members,
        count(*) AS available,
        bool_or(device_slower AND profiled) AS device_slower,
        bool_or(has_headroom AND profiled) AS has_headroom,
        bool_or(host_slower AND profiled) AS host_slower,
        max(device_ratio) FILTER (profiled) AS device_ratio,
        max(headroom) FILTER (profiled) AS headroom,
        max(host_ratio) FILTER (profiled) AS host_ratio,
        max(size_class) FILTER (profiled) AS size_class
    FROM members
    GROUP BY task_key, side
    HAVING profiled_members > 0
),
judged AS (
    SELECT
        g.*, c.templates, c.tail_share, r.rarity, r.ops, r.op_mix,
        CASE WHEN device_slower AND rules.takes_device THEN 'device'
             WHEN has_headroom AND rules.takes_headroom THEN 'headroom'
             WHEN host_slower AND rules.takes_host THEN 'host' END AS stratum,
        coalesce(c.in_tail, true) AS in_tail
    FROM gathered AS g
    CROSS JOIN rules
    LEFT JOIN curve AS c ON c.op_hash = g.op_hash
    LEFT JOIN rarity AS r ON r.op_hash = g.op_hash AND r.template_hash = g.template_hash
),
-- An operator sequence is on one side: eval where it can be, since train has plenty.
owners AS (
    SELECT op_hash, min(side) AS side
    FROM judged
    WHERE in_tail AND stratum IS NOT NULL AND side IN ('eval', 'train')
    GROUP BY op_hash
)
SELECT
    j.*,
    CASE WHEN NOT j.in_tail THEN 'frequent'
         WHEN j.stratum IS NULL THEN 'well_served'
         WHEN j.side = 'both' OR j.side <> o.side THEN 'straddling' END AS dropped_by
FROM judged AS j
LEFT JOIN owners AS o ON o.op_hash = j.op_hash;
