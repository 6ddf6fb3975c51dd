"""The page: the documents of the commands as pictures, from a server or as one file."""
