"""Dynamic programming: the backup, the loops over it, and what bounds are."""
