"""Types of options that may be left out: what stands for their value in the help, which then says nothing of None."""

from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

RunPlace = Annotated[Positional[Path], arg(metavar="RUN")]
FilePlace = Annotated[Positional[Path], arg(metavar="FILE")]
Name = Annotated[str | None, arg(metavar="NAME", help_behavior_hint="")]
Address = Annotated[str | None, arg(metavar="ADDRESS", help_behavior_hint="")]
Amount = Annotated[str | None, arg(metavar="AMOUNT", help_behavior_hint="")]
Column = Annotated[str | None, arg(metavar="COLUMN", help_behavior_hint="")]
Columns = Annotated[tuple[str, ...], arg(metavar="COLUMN …", help_behavior_hint="")]
File = Annotated[Path | None, arg(metavar="FILE", help_behavior_hint="")]
Folder = Annotated[Path | None, arg(metavar="FOLDER", help_behavior_hint="")]
Share = Annotated[float | None, arg(metavar="SHARE", help_behavior_hint="")]
Count = Annotated[int | None, arg(metavar="N", help_behavior_hint="")]
JsonFile = Annotated[str | None, arg(name="json", metavar="FILE", help_behavior_hint="")]
