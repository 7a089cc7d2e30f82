"""HTTP: one router a file, problem documents, the door, and the page."""
