"""Version 0 of the PettingZoo environment; importing it registers ``conquian/conquian-v0``."""

from pettingzoo.env_registry.registration import register

from conquian_env.envs.aec import env, raw_env

register("aec", "conquian/conquian-v0", "conquian_env.conquian_v0:env")

__all__ = ["env", "raw_env"]
