"""Which parts has the study of images? Nets and splits, what is measured on one, tables, printed numbers, pictures."""
