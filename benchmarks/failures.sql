-- Every failed capture: class, model, exception, the first line of its message, and where it was raised.
SELECT class, source || ':' || name AS model, stage, exception, split_part(message, chr(10), 1)[1:140] AS message, place
FROM failures
ORDER BY class, model;
