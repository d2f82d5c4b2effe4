"""Where models come from. One file a source; `registry` finds them, third parties add theirs by entry point."""
