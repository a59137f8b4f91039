"""The command line: one command a file, no logic of its own, and no torch until a command needs it."""
