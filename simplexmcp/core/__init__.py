"""The border to SimpleX: one protocol (`link`), typed calls over it (`api`), and the links themselves."""
