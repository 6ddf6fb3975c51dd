"""From bytes that jobs sent to rows: receiving, decoding, and what is known of each job."""
