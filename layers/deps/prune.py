"""Remove from an installed folder what a Lambda function never reads: `python prune.py FOLDER`.

The layer's size is paid at every cold start and at every local invoke, so it is kept small:
service descriptions of boto3 that Turnfold does not call, commands, tests, and pip's bookkeeping.
Names and versions of the packages (dist-info/METADATA) stay, for scanners and importlib.metadata.
"""

import shutil
import sys
from pathlib import Path

# Every service for which an adapter or the bootstrap makes a client.
SERVICES = frozenset({"cloudwatch", "dynamodb", "s3", "secretsmanager", "sqs", "sts"})

# Read by package managers only.
BOOKKEEPING = ("RECORD", "INSTALLER", "REQUESTED", "direct_url.json")


def remove(path: Path) -> None:
    """Delete a file or a folder with all that is in it."""
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()


def prune(root: Path) -> None:
    """Remove the superfluous parts of one `pip install --target` folder."""
    remove_if_there = [root / "bin"]
    # Botocore keeps one folder per service; its plain files (endpoints, retries) are needed.
    remove_if_there += [
        folder
        for folder in (root / "botocore" / "data").iterdir()
        if folder.is_dir() and folder.name not in SERVICES
    ]
    # boto3's own folder describes resources (boto3.resource), which are not used: clients only.
    remove_if_there += [root / "boto3" / "data", root / "boto3" / "examples"]
    for info in root.glob("*.dist-info"):
        remove_if_there += [info / name for name in BOOKKEEPING]
    for pattern in ("tests", "test", "__pycache__"):
        remove_if_there += list(root.rglob(pattern))
    # Sources of compiled modules, and type stubs: nothing reads them at run time.
    for pattern in ("*.pyi", "*.pyx", "*.c", "*.h"):
        remove_if_there += list(root.rglob(pattern))
    for path in remove_if_there:
        # A folder named before may have held it.
        if path.exists():
            remove(path)


if __name__ == "__main__":
    prune(Path(sys.argv[1]))
