"""The tools of the rooms server, by what they are about."""
