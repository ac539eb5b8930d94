"""Tables that are not on this disk: databases, object stores, streams, lazy frames."""
