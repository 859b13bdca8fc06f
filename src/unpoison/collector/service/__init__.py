"""One server process without its network: the Collector, its periodic jobs and its limits."""
