"""Whether there is anything, how much at least, and what not to believe."""
