"""People who agreed to be handed over as they are: looked at, put on record, handed over, and read again."""
