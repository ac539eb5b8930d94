"""The certificate of a release: what it states, its page for people, and how it is checked."""
