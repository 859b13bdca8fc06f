"""The collector without its network: one server process, and what it does by itself."""
