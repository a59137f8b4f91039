"""What a run looks like to a person: one self-contained page."""
