"""Decisions: one private bit for each person, and the cuts that people are held against."""
