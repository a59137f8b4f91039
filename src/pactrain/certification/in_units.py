"""Naming the units of the target in statements about losses."""

from dataclasses import replace

from pactrain.certification.certificate import Certificate
from pactrain.rules.units import unit_text


def named_in_units(certificate: Certificate, target: float, degree: int) -> Certificate:
    """The certificate whose losses say which units they are in."""
    if target == 1:
        return certificate
    unit = f", in units of {unit_text(target**degree)}"
    statements = tuple(
        replace(s, quantity=s.quantity + unit) if s.quantity.endswith("loss") else s for s in certificate.statements
    )
    return replace(certificate, statements=statements, digest="")
