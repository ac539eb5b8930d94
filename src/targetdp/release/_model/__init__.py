"""Models that somebody else wrote: judged by their file, then run in a process that has nothing to give away."""
