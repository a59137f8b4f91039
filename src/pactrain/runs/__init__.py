"""Run folders: what a run leaves behind, and its configuration."""
