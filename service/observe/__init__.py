"""What a running service tells: metrics, logs, traces, timings."""

# Set by a service with several workers before any of them imports prometheus_client, which then counts into its files.
METRICS_FOLDER = "PROMETHEUS_MULTIPROC_DIR"
