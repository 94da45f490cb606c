"""The only folder that talks to brokers."""

import logging

from heliograph.packages import put_off_init

put_off_init("kafka")
put_off_init("kafka.net")
logging.getLogger("kafka").addHandler(logging.NullHandler())  # the one thing of kafka/__init__.py that must not wait
