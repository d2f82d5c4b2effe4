"""The `passnet` command and the Prefect flows behind it: orchestration only, no decisions about graphs."""
