"""Pictures: networks drawn from their modules, and plots of what was measured. May import papers, core and training."""
