"""What the use cases need from the outside, by subject. Adapters implement these protocols."""
