"""Attacks: what an adversary can still learn. One file each."""
