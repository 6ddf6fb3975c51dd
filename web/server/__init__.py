"""The server of `tfprof web`; the only package that needs Starlette and uvicorn."""
