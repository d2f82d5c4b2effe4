"""The judged side: a forked, contained process that loads a submission, runs it and reports; it decides nothing."""
