"""`python -m unpoison` is the command `unpoison`."""

from unpoison.cli import main

if __name__ == "__main__":
    main()
