"""Facts as data, each row with its source and date: slices, zones, runtimes, disks, machines, quotas."""
