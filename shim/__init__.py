"""What runs inside jobs that are not ours, and the formats it defines; standard library only, Python 3.7 or later."""
