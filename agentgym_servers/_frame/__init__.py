"""What all servers share: applications, limits, environments that are held, drawing from a seed, oracles."""
