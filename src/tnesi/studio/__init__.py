"""The labeling studio: a page in the browser on which a person names examples, and a server for it.

A person's answers go to the `store` (one SQLite file). The `learner` learns the mixture, then the classes anew after
each answer, in the background, and publishes what it has `learned`, which never changes afterwards. `questions` has the
next rows to ask for ready. `session` ties these together, `api` answers requests from what is published, and never
waits for learning. Needs msgspec, starlette and uvicorn (``pip install 'tnesi[studio]'``).
"""
