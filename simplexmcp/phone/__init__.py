"""The phone: a web page on which a person without the SimpleX app plays people of the simulated network."""
