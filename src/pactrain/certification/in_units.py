"""Units of columns and targets in what a certificate says."""

from dataclasses import replace

from pactrain.certification.certificate import Certificate
from pactrain.distributions.posterior import Posterior, Snapshot
from pactrain.problem.losses import Loss
from pactrain.problem.units import Units


def named_in_units(certificate: Certificate, target: float, degree: int) -> Certificate:
    """The certificate whose losses say which units they are in."""
    if target == 1:
        return certificate
    unit = f", in units of {_text(target**degree)}"
    statements = tuple(
        replace(s, quantity=s.quantity + unit) if s.quantity.endswith("loss") else s for s in certificate.statements
    )
    return replace(certificate, statements=statements, digest="")


def unit_remarks(units: Units) -> list[str]:
    """What the certificate says of the units that were trained in."""
    if not units.taken:
        return []
    parts = []
    if units.inputs is not None:
        low, high = float(units.inputs.min()), float(units.inputs.max())
        parts.append(f"inputs in units of {f'{_text(low)} to ' if low < high else ''}{_text(high)}")
    if units.target != 1:
        losses = _text(units.target**units.degree)
        parts.append(
            f"targets in units of {_text(units.target)}, so that losses are in units of {losses} here and in the history"
        )
    price = f" (the choice costs {units.nats:.1f} nats)" if units.nats else ""
    return [
        f"trained with {' and '.join(parts)}{price}; the weights have taken the units over, and the network takes and gives unscaled numbers"
    ]


def take_over(units: Units, posterior: Posterior, stage1_end: Snapshot | None) -> dict[str, Snapshot]:
    """Bring units into what the posterior says of the weights; the posterior at the end of stage 1, likewise, by its name."""
    posterior.change_units(units.scales(posterior.model))
    if stage1_end is None:
        return {}
    if posterior.units is not None:
        means, log_std = stage1_end.means * posterior.units, stage1_end.log_std + posterior.units.log()
        stage1_end = replace(stage1_end, means=means, log_std=log_std)
    return {"end of stage 1": stage1_end}


def losses_in_units(loss: Loss, target: float) -> Loss:
    """The loss of raw answers and targets, counted in units of the target."""
    if target == 1 or not loss.of_outputs:
        return loss
    own = loss.per_example
    return replace(loss, per_example=lambda output, answer: own(output / target, answer / target))


def _text(number: float) -> str:
    """A unit as people read it."""
    return f"{number:,.0f}" if number >= 1 else f"{number:.2g}"
