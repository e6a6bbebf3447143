"""Dynamic programming: the backup, and the loops over it."""
