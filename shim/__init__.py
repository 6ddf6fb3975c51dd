"""The code that runs inside jobs; standard library only, Python 3.7 or later."""
