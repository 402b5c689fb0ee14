"""Figures of the report, small enough for a phone."""
