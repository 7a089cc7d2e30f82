"""One run as a sequence of events. Knows no HTTP and no database."""
