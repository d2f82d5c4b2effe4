"""A snapshot as a dataset that others read without this package: Hugging Face's layout, a card, Croissant metadata."""
