"""The service of a shared store: it passes what users send to a collector for each of them."""
