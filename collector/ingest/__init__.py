"""Ingestion: receives messages, decodes records, and keeps the state of each open job."""
