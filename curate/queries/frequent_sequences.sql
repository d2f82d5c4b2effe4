-- Which operator sequences are the most frequent?
--
-- Sequences of $length operators that stand next to each other in reading order, placeholders skipped. template_calls
-- counts one graph of each template, so that a large family does not drown the rest; calls counts every unique graph.
--
-- param length = 3: operators in a sequence, 1 to 8
-- param rows = 20: sequences to show
SELECT array_to_string(sequence, ' → ') AS sequence, template_calls, calls
FROM op_ngrams($length)
LIMIT $rows;
