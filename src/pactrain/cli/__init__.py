"""The command line: one command per file, no logic of its own, and no torch until a command needs it."""
