"""``python -m cuda_order_check`` becomes the command ``cuda-order-check``."""

import os
import sys

from cuda_order_check import command

if __name__ == "__main__":
    try:
        os.execv(command(), ["cuda-order-check", *sys.argv[1:]])
    except OSError as error:
        sys.exit(f"cuda-order-check: {error}")
