int from_host(int x) { return x + 1; }
