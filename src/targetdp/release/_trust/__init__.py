"""Who signs: keys on disk, signers that are known by name, and second signatures under a policy."""
