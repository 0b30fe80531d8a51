"""The environments: one file for each library's interface."""
