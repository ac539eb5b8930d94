"""What adds the noise: on one machine, or on Spark."""
