"""Turn a report of ``pip install --dry-run --report`` into the lines of constraints.txt.

Usage: ``python tools/constraints.py REPORT > constraints.txt`` (``make constraints`` runs both steps).
"""

import json
import sys
from pathlib import Path

HEADER = """\
# Exact versions of everything hookloop can install: core, every extra, and the development tools.
# Resolved together for Python 3.11 on Linux x86-64; written by `make constraints`, never by hand.
# To refresh all versions: `make constraints`. To move to another torch: `make constraints TORCH=2.14.0`.
# torch stands without a local version, so that a CPU or a CUDA build of that release satisfies it; the
# libraries that come with a CUDA build are pinned by torch itself.
"""
PROJECT = "hookloop"


def pins(report: dict) -> list[str]:
    """List ``name==version`` for every package of the report except the project itself."""
    packages = {
        item["metadata"]["name"].lower().replace("_", "-"): item["metadata"]["version"].split("+")[0]
        for item in report["install"]
    }
    # A CUDA build brings these along; they must not be asked of a machine with a CPU build.
    cuda_only = {name for name in packages if name.startswith(("nvidia-", "cuda-")) or name == "triton"}
    return [f"{name}=={packages[name]}" for name in sorted(packages.keys() - cuda_only - {PROJECT})]


if __name__ == "__main__":
    print(HEADER + "\n".join(pins(json.loads(Path(sys.argv[1]).read_text()))))
