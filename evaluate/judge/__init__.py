"""The judging side: draws inputs, holds references, compares bytes, times and gives verdicts."""
