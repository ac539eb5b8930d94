"""Figures for print. A figure function takes finished data and returns a matplotlib figure."""
