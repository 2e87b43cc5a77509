"""Parts of analyses/RESULTS.md: each turns measured files into Markdown."""
