-- The rows of one board, best first.
SELECT *
FROM leaderboard($bench, $device, $clock)
WHERE configuration = $configuration AND cases = $cases
ORDER BY place, submission_name, lowering, submission
