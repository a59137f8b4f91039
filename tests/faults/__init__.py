"""Files from anybody, disks that fail, processes that are killed."""
