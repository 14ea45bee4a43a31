"""Sleeps for as long as it is left to: what a test runs in the place of a program that hangs."""

import time

if __name__ == "__main__":
    time.sleep(3_600)
