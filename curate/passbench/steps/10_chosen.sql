-- chosen: the tasks. In eval, rules.host_share of them are of the stratum host, the rest slower on the device or with
-- headroom, half and half while both last; what one cannot fill the others do. In train, everything that is left.
CREATE OR REPLACE TABLE chosen AS
WITH quotas AS (
    -- Places in line: with shares a : b, the k-th of a stratum stands at k / share.
    SELECT
        r.*,
        r.place / CASE r.stratum WHEN 'host' THEN greatest(rules.host_share, 1e-9) ELSE (1 - rules.host_share) / 2 END AS line
    FROM ranked AS r, rules
)
SELECT * EXCLUDE (line), row_number() OVER (PARTITION BY side ORDER BY line, stratum, place) AS number
FROM quotas, rules
QUALIFY side = 'train' OR row_number() OVER (PARTITION BY side ORDER BY line, stratum, place) <= rules.tasks;
