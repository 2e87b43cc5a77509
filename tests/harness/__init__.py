"""What tests of several folders share: services, processes, files, toy models."""
