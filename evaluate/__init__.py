"""Measuring and judging compiler passes."""
