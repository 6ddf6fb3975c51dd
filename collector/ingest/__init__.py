"""Ingestion: receive messages, decode records, keep the state of each open job."""
