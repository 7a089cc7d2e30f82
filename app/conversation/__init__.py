"""The words of a conversation: blocks, messages, entries, and the views of them. Pure; no I/O."""
