"""Services that all other packages use: errors, events, seeds, processes, interrupts, files, devices."""
