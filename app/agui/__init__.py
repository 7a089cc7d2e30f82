"""The wire: AG-UI in, AG-UI out. Builds frames and turns; knows no socket and no database."""
