"""Environments of many turns. Importing this package registers turngym's ids with Gymnasium."""

from turngym.envs.registration import register_envs

register_envs()
