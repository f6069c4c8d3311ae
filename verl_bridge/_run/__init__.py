"""A training run: arguments, retries, records and metrics of its episodes."""
