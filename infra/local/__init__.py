"""The local stack: the deployed functions on one machine, without a cloud account.

`python -m infra.local` starts an emulated table, bucket and queue, loads the real Lambda
handlers and serves them over HTTP, with the queue and the schedule that drive them on AWS.
"""
