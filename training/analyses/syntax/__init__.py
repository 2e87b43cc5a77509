"""What syntax says of the gate: parts of speech, and dependency labels."""
