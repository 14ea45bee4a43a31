"""The command line: `python -m trivet` is `trivet`."""

from retrieval.cli import main

if __name__ == "__main__":
    main(prog_name="trivet")
