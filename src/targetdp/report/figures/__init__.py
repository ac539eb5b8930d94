"""Figures for print: one file each. A figure function takes finished data and returns a matplotlib figure."""
