"""The tests; `playing` and `oracle` are their shared helpers."""
