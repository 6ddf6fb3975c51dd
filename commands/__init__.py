"""Code that starts commands and daemons, and code that they share; standard library only."""
