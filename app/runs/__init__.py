"""The life of a run, longer than any connection."""
