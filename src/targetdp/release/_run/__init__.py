"""One run of a release: what it reserves, whether it was made before, and how it ends without one."""
