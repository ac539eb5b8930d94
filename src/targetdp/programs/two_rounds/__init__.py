"""Two rounds: weights learned on a private sample, then one private score for everybody else."""
