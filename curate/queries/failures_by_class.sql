-- Which models could not be captured, and why?
--
-- One row for each source and class of failure; share is of all captures of the source; seconds is the median
-- wall-clock time of a failed capture, null where none was measured.
SELECT
    f.source,
    f.class,
    count(*) AS failures,
    round(count(*) / any_value(a.captures), 4) AS share,
    round(median(f.seconds), 2) AS seconds,
    min(f.name) AS example,
    arg_min(left(split_part(f.message, chr(10), 1), 100), f.name) AS example_message
FROM failures_timed AS f
JOIN (SELECT source, count(*) AS captures FROM captures GROUP BY source) AS a USING (source)
GROUP BY f.source, f.class
ORDER BY failures DESC, f.source, f.class;
