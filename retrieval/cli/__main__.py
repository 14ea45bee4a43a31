"""`python -m retrieval.cli` is `trivet`."""

from retrieval.cli import main

main(prog_name="trivet")
