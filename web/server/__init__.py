"""The servers of the page and of the metrics; the only package that needs Starlette and uvicorn."""
