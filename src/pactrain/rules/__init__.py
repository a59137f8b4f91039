"""What `auto` decides, one decision per file."""
