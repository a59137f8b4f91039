"""The numbers of the default rules as part of a run's identity, so that a store never mixes results of different defaults."""

import functools
import hashlib
import json
from dataclasses import asdict

from pactrain.rules import constants
from pactrain.rules.presets import AUTO, CERTIFY


def with_rules(data: str) -> str:
    """What identifies data together with the default rules.

    Plain training and the presets of the paper do not depend on the defaults and are identified by their data alone.  A change of the
    rules' code that changes no number is not seen.

    >>> with_rules("digest") == with_rules("digest") != with_rules("other")
    True
    """
    return f"{data} {rules_digest()}"


@functools.cache
def rules_digest() -> str:
    """Fingerprint of every number that steers a default run."""
    numbers = {name: value for name, value in vars(constants).items() if name.isupper()}
    text = json.dumps([numbers, asdict(AUTO), asdict(CERTIFY)], sort_keys=True)
    return f"rules-{hashlib.blake2b(text.encode(), digest_size=8).hexdigest()}"
