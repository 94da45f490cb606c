"""Clusters that let nobody in without TLS or a login."""
