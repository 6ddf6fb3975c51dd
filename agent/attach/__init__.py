"""Attach: arms the shim in a running job that was started without tfprof (docs/attach.md)."""
