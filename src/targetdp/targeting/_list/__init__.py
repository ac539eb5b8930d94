"""From a release to the list of a program: who is on it, why, and a test of drawn answers."""
