"""What the operating system gives: paths, files written whole, cores, threads of linear algebra."""
