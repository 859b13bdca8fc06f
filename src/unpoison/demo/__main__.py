"""Both demonstrations, one after the other."""

from unpoison.demo import collected, simulated

if __name__ == "__main__":
    simulated.main()
    collected.main()
