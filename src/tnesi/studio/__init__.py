"""The labeling studio: a web page for labeling examples, and its server.

Answers go to the `store` (one SQLite file). The `learner` learns the mixture and then, after each answer, the classes.
It runs in the background and publishes immutable results (`learned`). `questions` holds the next rows to ask about.
`session` ties these together. `api` answers requests from published results and never waits for learning.

Needs msgspec, starlette and uvicorn (``pip install 'tnesi[studio]'``).
"""
