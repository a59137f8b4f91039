"""What everything runs on: errors, events, seeds, processes, interrupts, files, devices."""
