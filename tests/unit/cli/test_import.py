"""What ``hookloop import`` refuses, and in which words."""

from __future__ import annotations

from pathlib import Path

import pytest

from hookloop.cli.main import run


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("module", "it holds a torch.nn.modules.linear.Linear; save the tensors of its state_dict() instead."),
        ("nonsense", "torch cannot read it."),
    ],
)
def test_a_file_that_is_not_tensors_alone_is_refused_in_a_sentence(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], content: str, reason: str
) -> None:
    import torch

    file = tmp_path / "foreign.pt"
    if content == "module":
        torch.save({"weights": torch.nn.Linear(4, 2)}, file)
    else:
        file.write_text(content)

    assert run(["import", str(file), "--to", str(tmp_path / "weights.safetensors")]) == 2

    said = capfd.readouterr().err
    assert said.endswith(f"{reason}\n")
    assert "weights_only" not in said
    assert not (tmp_path / "weights.safetensors").exists()
