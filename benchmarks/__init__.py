"""What is measured, in one command: `python -m benchmarks`.

Each benchmark is a function that yields figures; `__main__.BENCHMARKS` lists them. Servers and load generators are
processes of their own, and a comparison alternates between its two sides, so that a busy machine hits both.
"""
