"""One measuring protocol for profiling and scoring alike: devices, clocks, timing, comparison, floors."""
