"""Before a release: what would go out, what it tells, and everything that keeps it from going out."""
