"""What a program has open and awaits: databases, connections, blocks, results in parts, and large values."""
