"""Whether locks hold in a folder: on a disk of this machine they do, on a network they need not."""

import fcntl
import os
import secrets
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

NETWORK = frozenset(
    """
    nfs nfs4 cifs smb2 smb3 smbfs afs ncpfs ceph glusterfs lustre beegfs gpfs ocfs2 davfs davfs2 vboxsf
    fuse.vmhgfs-fuse fuse.sshfs fuse.s3fs fuse.gcsfuse fuse.rclone fuse.glusterfs fuse.davfs2 fuse.blobfuse
    """.split()  # noqa: SIM905 (a list is easier to read so)
)
"""File systems on which several machines may write: locks of one need not hold for another."""


def must_be_local(folder: Path) -> None:
    """Refuse a folder of a network, where locks of one machine need not hold for another.

    Args:
        folder: Where several processes will lock files.

    Raises:
        ValueError: It is on a network.

    Example:
        >>> import tempfile
        >>> must_be_local(Path(tempfile.mkdtemp()))
    """
    kind = _file_system(folder)
    if kind in NETWORK:
        raise ValueError(
            f"{folder} is on a network ({kind}), where two machines could spend the same budget at once: put "
            "the desk on a disk of one machine"
        )


def must_hold_locks(folder: Path) -> None:
    """Refuse a folder where another process gets a lock that this one has.

    Args:
        folder: Where several processes will lock files.

    Raises:
        ValueError: Locks do not hold there.

    Example:
        >>> import tempfile
        >>> must_hold_locks(Path(tempfile.mkdtemp()))
    """
    path = folder / f".lock.{secrets.token_hex(6)}"
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        trial = "import fcntl, sys; fcntl.flock(open(sys.argv[1], 'r+'), fcntl.LOCK_EX | fcntl.LOCK_NB)"
        other = subprocess.run(  # noqa: S603
            [sys.executable, "-c", trial, str(path)], check=False, capture_output=True, timeout=60
        )
        if other.returncode == 0:
            raise ValueError(f"{folder} is on a file system without locks: put the desk on another disk")
    finally:
        os.close(handle)
        path.unlink(missing_ok=True)


def _file_system(folder: Path) -> str | None:
    """The type of the file system that a folder is on, where the system tells it."""
    found: tuple[int, str | None] = (-1, None)
    with suppress(OSError):
        here = folder.resolve()
        for line in Path("/proc/self/mounts").read_text(encoding="utf-8", errors="replace").splitlines():
            _, point, kind, *_ = line.split(" ")
            # Spaces are written \\040, and unicode_escape takes every other byte for a letter of its own.
            mounted = Path(os.fsdecode(point.encode().decode("unicode_escape").encode("latin-1")))
            if mounted in (here, *here.parents) and len(mounted.parts) >= found[0]:
                found = (len(mounted.parts), kind)
    return found[1]
