-- Devices that have figures in a mode, GPUs and those with the most figures first.
SELECT device, count(*) AS figures
FROM profiles
WHERE mode = $mode AND class = 'ok'
GROUP BY device
ORDER BY device = 'cpu', figures DESC, device
