"""Models that somebody else wrote: judged by their file, and run where nothing can be given away."""
