"""Tables: reading and writing them in batches, and invented populations."""
