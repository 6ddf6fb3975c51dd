"""The package that contains sessions."""
