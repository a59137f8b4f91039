"""Data by name or from the user's own files, ready to train on."""
