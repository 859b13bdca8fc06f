"""Tables, the database behind them, and the one thread that writes to it."""
