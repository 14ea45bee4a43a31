"""Sleeps until it is killed; tests run it in place of a program that hangs."""

import time

if __name__ == "__main__":
    time.sleep(3_600)
