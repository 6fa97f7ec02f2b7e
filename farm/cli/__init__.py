"""typer commands: parse, call the pipeline, print."""
