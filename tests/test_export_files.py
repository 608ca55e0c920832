"""A file appears whole or not at all."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from s11.export_files import check_output, write


def broken() -> Iterator[bytes]:
    yield b"half"
    raise ValueError("enough")


def test_a_file_is_written_and_written_over(tmp_path: Path) -> None:
    path = tmp_path / "out.csv"
    write(str(path), [b"a,", b"b\n"])
    assert path.read_bytes() == b"a,b\n"
    write(str(path), iter([b"c\n"]))
    assert path.read_bytes() == b"c\n"
    assert os.listdir(tmp_path) == ["out.csv"]


def test_what_fails_half_way_leaves_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "out.csv"
    with pytest.raises(ValueError, match="enough"):
        write(str(path), broken())
    assert os.listdir(tmp_path) == []
    path.write_bytes(b"old")
    with pytest.raises(ValueError, match="enough"):
        write(str(path), broken())
    assert os.listdir(tmp_path) == ["out.csv"]
    assert path.read_bytes() == b"old"


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    target, link = tmp_path / "target.csv", tmp_path / "link.csv"
    target.write_bytes(b"old")
    link.symlink_to(target)
    write(str(link), [b"new"])
    assert link.is_symlink()
    assert target.read_bytes() == b"new"


def test_a_device_takes_what_comes() -> None:
    write(os.devnull, [b"gone"])
    assert not Path(os.devnull).is_file()


def test_a_file_in_the_working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write("out.csv", [b"a"])
    assert (tmp_path / "out.csv").read_bytes() == b"a"


def test_a_name_of_250_letters(tmp_path: Path) -> None:
    path = tmp_path / ("n" * 250)
    write(str(path), [b"a"])
    assert path.read_bytes() == b"a"


def test_standard_output(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    write("-", [b"PAR1\xff", b"\x00"])
    assert capsysbinary.readouterr().out == b"PAR1\xff\x00"


def test_what_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=f"output: '{tmp_path.name}' is a folder"):
        check_output(str(tmp_path))
    with pytest.raises(ValueError, match=r"output: 'x\.csv' lies in a folder that is not there"):
        check_output(str(tmp_path / "none" / "x.csv"))
    for name in ("", "a\0b"):
        with pytest.raises(ValueError, match="names no file"):
            write(name, [b"a"])
