"""The papers' tables reproduced, and analyses/RESULTS.md."""
