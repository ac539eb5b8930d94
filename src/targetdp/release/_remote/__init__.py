"""Releases in object stores: how they are published there, and how they are read from there."""
