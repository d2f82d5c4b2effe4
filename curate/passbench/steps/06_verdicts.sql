-- verdicts: of every subgraph its figures on the device, and the first filter that it fails (`dropped_by`, null for a
-- sound one). The filters in their order:
--
--   lone             a single operator, or operators that only view and copy
--   no_floats        no floating-point input: nothing to be tolerant about, and no dtype to vary
--   unprofiled       no figures on the device; it may still be held out, for it is known to run
--   not_measured     profiling ended with a class other than ok
--   several_kernels  Inductor does not make exactly one kernel of its own of it: not proven fusible on the device
--   trivial_answer   zeros, a constant or a copy of an input would be correct
--   ignores_inputs   some input changes no output
--   inexact          no reference to compare with, or Inductor (or eager) beyond what the judge admits
--   unstable         a clock's interquartile range is too wide to say which of two is slower
--   launch_noise     its device work is not distinguishable from launching a kernel
CREATE OR REPLACE TABLE verdicts AS
WITH figures AS (
    SELECT
        s.*, h.dtype, p.class, p.cause,
        p.inductor_host_us / p.eager_host_us AS host_ratio,
        p.inductor_device_us / nullif(p.eager_device_us, 0) AS device_ratio,
        p.headroom,
        p.eager_device_us, p.inductor_device_us, p.launch_us, p.eager_t, p.inductor_t, p.inductor_problem, p.reference,
        p.scheduler_kernels, p.extern_kernels, p.inductor_kernels, p.inductor_copies,
        p.zero_passes OR p.constant_passes OR p.copy_passes AS trivial_answer,
        len(p.insensitive) > 0 AS ignores_inputs,
        CASE WHEN p.eager_device_us IS NULL THEN greatest(p.eager_host_spread, p.inductor_host_spread)
             ELSE greatest(p.eager_device_spread, p.inductor_device_spread) END AS spread
    FROM subjects AS s
    LEFT JOIN shapes AS h USING (subgraph_hash)
    LEFT JOIN (SELECT q.* FROM profiles AS q, rules WHERE q.device = rules.device AND q.mode = rules.mode) AS p USING (subgraph_hash)
)
SELECT
    f.*,
    coalesce(f.device_ratio > rules.slower, false) AS device_slower,
    coalesce(f.host_ratio > rules.slower, false) AS host_slower,
    coalesce(f.headroom >= rules.headroom, false) AS has_headroom,
    CASE
        WHEN NOT f.is_region THEN 'lone'
        WHEN f.dtype IS NULL THEN 'no_floats'
        WHEN f.class IS NULL THEN 'unprofiled'
        WHEN f.class <> 'ok' THEN 'not_measured'
        WHEN f.scheduler_kernels IS DISTINCT FROM 1 OR f.extern_kernels IS DISTINCT FROM 0
            OR coalesce(f.inductor_kernels, 1) <> 1 OR coalesce(f.inductor_copies, 0) <> 0 THEN 'several_kernels'
        WHEN coalesce(f.trivial_answer, true) THEN 'trivial_answer'
        WHEN coalesce(f.ignores_inputs, false) THEN 'ignores_inputs'
        WHEN f.reference IS NULL OR f.eager_t IS NULL OR f.inductor_t IS NULL OR f.inductor_problem IS NOT NULL
            OR f.eager_t > rules.loosest_t OR f.inductor_t > greatest(rules.loosest_t, f.eager_t + 1) THEN 'inexact'
        WHEN f.spread > rules.spread THEN 'unstable'
        WHEN f.inductor_device_us < rules.launches * f.launch_us THEN 'launch_noise'
    END AS dropped_by
FROM figures AS f, rules;
