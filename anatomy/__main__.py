"""`python -m anatomy` is the command `pytorch-gpu-anatomy`, for a checkout nobody installed."""

from anatomy.cli import main

if __name__ == "__main__":
    main()
