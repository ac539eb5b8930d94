"""Tables: example populations (reading and writing come with the release job)."""
