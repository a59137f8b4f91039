"""Archives with any content."""

import io
import tarfile


def tar_of(files: dict[str, bytes], *links: tuple[str, str, bytes]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
        for name, goal, kind in links:
            member = tarfile.TarInfo(name)
            member.type, member.linkname = kind, goal
            tar.addfile(member)
    return out.getvalue()
