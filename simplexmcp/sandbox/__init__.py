"""A simulated SimpleX network: the same commands, answers, events and numbers as a core, without a network."""
