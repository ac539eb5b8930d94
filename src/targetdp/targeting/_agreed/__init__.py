"""People who agreed to be used as they are: their rows and labels, and the questions that these suggest."""
