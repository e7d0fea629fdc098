"""The grading driver: builds the student notebooks, runs answers, keeps the gradebook.

Run as `python -m autograde` from the root of the course; see `python -m autograde --help`.
"""
