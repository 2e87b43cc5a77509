"""What a running service tells: metrics, logs, traces, timings."""
