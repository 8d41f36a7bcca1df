"""Archives and folders of recordings, those made to do harm among them."""

import gzip
import os
import random
import stat
import struct
import tarfile
import zipfile

import pytest

from anatomy.record import loading, recording
from anatomy.record.exchange import archives
from anatomy.table.errors import AnatomyError, BadParameter, RecordingError
from tests.record.exchange.sets import PLACE, save, tar, zipped


def unpacked(source) -> dict[str, bytes]:
    with archives.unpacked(source) as found:
        return {loading.place(file): file.read_bytes() for file in loading.files(found.folder)}


def header(name, kind, size=0, target=""):
    made = tarfile.TarInfo(name)
    made.type, made.size, made.linkname = kind, size, target
    return made


def test_a_set_comes_back_to_the_byte_in_every_form(tmp_path):
    file = save(tmp_path / "recordings")
    content = {PLACE: file.read_bytes()}
    packed = tmp_path / "set.tar.gz"
    archives.pack(recording.all_recordings(tmp_path / "recordings"), packed)
    first = packed.read_bytes()
    archives.pack(recording.all_recordings(tmp_path / "recordings"), packed)
    assert packed.read_bytes() == first
    with tarfile.open(packed) as archive:
        assert archive.getnames() == [f"recordings/{PLACE}"]
    as_zip = zipped(tmp_path / "set.zip", (f"a/b/{PLACE}", file.read_bytes()))
    forms = (packed, as_zip, tmp_path / "recordings", tmp_path / "recordings" / "toy-gpu")
    for source in forms:
        assert unpacked(source) == content, source


def test_what_is_in_no_recordings_place_is_passed_over(tmp_path):
    file = save(tmp_path / "recordings").read_bytes()
    beside = ("README.md", "toy-gpu/verdicts.json", "toy-gpu/a.b/._default.json")
    beside += ("toy-gpu/contiguity.bench/default.failed.json", "toy-gpu/contiguity.bench/a.txt")
    source = tar(tmp_path / "set.tgz", (PLACE, file), *((name, b"x") for name in beside))
    with archives.unpacked(source) as found:
        assert found.passed_over == len(beside)
        assert [loading.place(each) for each in loading.files(found.folder)] == [PLACE]


@pytest.mark.parametrize("name", ["../" + PLACE, "/" + PLACE, "a/../../" + PLACE, "C:/" + PLACE])
def test_a_name_that_leads_out_ends_the_set(tmp_path, name):
    for source in (tar(tmp_path / "a.tgz", (name, b"{}")), zipped(tmp_path / "a.zip", (name, b""))):
        with pytest.raises(RecordingError, match="leads out of it"):
            unpacked(source)


def test_links_devices_and_pipes_end_the_set(tmp_path):
    kinds = (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE)
    for kind in kinds:
        source = tar(tmp_path / "a.tgz", header(PLACE, kind, target="/etc/passwd"))
        with pytest.raises(RecordingError, match="is no plain file"):
            unpacked(source)
    link = zipfile.ZipInfo(PLACE)
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    with pytest.raises(RecordingError, match="is no plain file"):
        unpacked(zipped(tmp_path / "a.zip", (link, b"/etc/passwd")))
    folder = tmp_path / "folder"
    (folder / "toy-gpu" / "contiguity.bench").mkdir(parents=True)
    (folder / PLACE).symlink_to("/etc/passwd")
    with pytest.raises(RecordingError, match="is no plain file"):
        unpacked(folder)
    (folder / PLACE).unlink()
    os.mkfifo(folder / PLACE)  # which is not waited for
    with pytest.raises(RecordingError, match="is no plain file"):
        unpacked(folder)
    (folder / PLACE).unlink()
    (folder / "other").symlink_to("/etc")
    with pytest.raises(RecordingError, match="is no plain file"):
        unpacked(folder)


def test_a_recording_that_is_in_it_twice_ends_the_set(tmp_path):
    source = tar(tmp_path / "a.tgz", (f"a/{PLACE}", b"{}"), (f"b/{PLACE}", b"{}"))
    with pytest.raises(RecordingError, match="is in it twice"):
        unpacked(source)


@pytest.mark.parametrize("bit, refused", [(0x1, True), (0x2, False), (0x800, False)])
def test_an_encrypted_file_ends_the_set(tmp_path, bit, refused):
    """Bit 0 of a zip entry's flags says encrypted; others concern its compression or its name."""
    source = zipped(tmp_path / "set.zip", (PLACE, save(tmp_path / "recordings").read_bytes()))
    spoiled = bytearray(source.read_bytes())
    for mark, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        at = spoiled.index(mark) + offset
        spoiled[at : at + 2] = struct.pack("<H", bit)
    source.write_bytes(spoiled)
    if refused:
        with pytest.raises(RecordingError, match="is encrypted, or oddly compressed"):
            unpacked(source)
    else:
        assert list(unpacked(source)) == [PLACE]


def test_a_file_compressed_in_a_way_that_few_can_read_ends_the_set(tmp_path):
    source = tmp_path / "set.zip"
    with zipfile.ZipFile(source, "w", zipfile.ZIP_BZIP2) as archive:
        archive.writestr(PLACE, save(tmp_path / "recordings").read_bytes())
    with pytest.raises(RecordingError, match="is encrypted, or oddly compressed"):
        unpacked(source)


def test_bombs_are_ended_before_they_are_unpacked(tmp_path, monkeypatch):
    large = bytes((loading.LARGEST_MIB + 1) * 2**20)
    for source in (
        tar(tmp_path / "a.tgz", (PLACE, large)),
        zipped(tmp_path / "a.zip", (PLACE, large)),
    ):
        assert source.stat().st_size < 100_000
        with pytest.raises(RecordingError, match="has more than 16 MiB"):
            unpacked(source)
    monkeypatch.setattr(archives, "MOST_MIB", 1)
    some = [(PLACE.replace("default", f"m={n}"), bytes(2**19)) for n in range(4)]
    for source in (tar(tmp_path / "a.tgz", *some), zipped(tmp_path / "a.zip", *some)):
        with pytest.raises(RecordingError, match="more than 1 MiB when it is unpacked"):
            unpacked(source)
    endless = tmp_path / "endless.gz"  # one header, and zeros for as long as anybody reads
    with gzip.open(endless, "wb") as file:
        file.write(header("a", tarfile.REGTYPE, 2**40).tobuf() + bytes(2**23))
    with pytest.raises(RecordingError, match=r"more than 1 MiB when it is unpacked|end of data"):
        unpacked(endless)


def test_a_set_has_64_mib_when_it_is_unpacked_and_32_as_an_archive(tmp_path):
    most = [(PLACE.replace("default", f"m={n}"), bytes(2**24)) for n in range(4)]
    assert len(unpacked(zipped(tmp_path / "a.zip", *most))) == 4
    with pytest.raises(RecordingError, match="it has more than 64 MiB when it is unpacked"):
        unpacked(zipped(tmp_path / "a.zip", *most, (PLACE, b" ")))
    for size, said in ((2**25, "can't be unpacked"), (2**25 + 1, "it has more than 32 MiB")):
        (tmp_path / "a.tgz").write_bytes(b"\x1f\x8b")
        os.truncate(tmp_path / "a.tgz", size)
        with pytest.raises(RecordingError, match=said):
            unpacked(tmp_path / "a.tgz")


def test_too_many_files_end_the_set(tmp_path, monkeypatch):
    with pytest.raises(RecordingError, match=r"it has more than 4,096 files\."):
        unpacked(tar(tmp_path / "a.tgz", *[header("a", tarfile.REGTYPE)] * 4097))
    monkeypatch.setattr(archives, "MOST_FILES", 8)
    places = [PLACE.replace("default", f"m={n}") for n in range(9)]
    folder = tmp_path / "folder"
    (folder / PLACE).parent.mkdir(parents=True)
    for count, place in enumerate(places, 1):
        some = [(name, b"") for name in places[:count]]
        (folder / place).touch()
        for source in (tar(tmp_path / "a.tgz", *some), zipped(tmp_path / "a.zip", *some), folder):
            if count <= 8:
                assert len(unpacked(source)) == count
                continue
            with pytest.raises(RecordingError, match=r"it has more than 8 files\."):
                unpacked(source)


def test_too_many_folders_end_the_set(tmp_path, monkeypatch):
    monkeypatch.setattr(archives, "MOST_FILES", 4)
    folder, entries = tmp_path / "folder", [(PLACE, b"")]
    (folder / PLACE).parent.mkdir(parents=True)
    (folder / PLACE).touch()
    for count in range(4, 10):  # with the file and the two that it lies in
        (folder / "toy-gpu" / f"{count}").mkdir()
        entries.insert(0, header(f"toy-gpu/{count}", tarfile.DIRTYPE))
        whole = tar(tmp_path / "a.tgz", *entries, *[header("a", tarfile.DIRTYPE)] * 2)
        for source, hint in ((whole, ""), (folder, " Name a folder in it.")):
            if count <= 8:
                assert list(unpacked(source)) == [PLACE]
                continue
            with pytest.raises(RecordingError, match=f"it has more than 4 files.{hint} Nothing"):
                unpacked(source)
    named = zipped(tmp_path / "a.zip", ("toy-gpu/", b""), (PLACE, b""))
    with archives.unpacked(named) as found:
        assert found.passed_over == 0


def test_a_name_has_400_characters_and_a_key_as_many_as_we_give_it(tmp_path):
    longest = PLACE.replace("default", "k" * loading.LONGEST_KEY)
    names = ["a" * (399 - len(PLACE)) + "/" + PLACE, longest, longest.replace("kk", "kkk", 1)]
    with archives.unpacked(tar(tmp_path / "a.tgz", *((name, b"") for name in names))) as found:
        kept = [loading.place(file) for file in loading.files(found.folder)]
        assert sorted(kept) == [PLACE, longest] and found.passed_over == 1
    with pytest.raises(RecordingError, match="leads out of it, or is none"):
        unpacked(tar(tmp_path / "a.tgz", ("a" + names[0], b"")))


def test_a_header_that_would_be_searched_for_long_is_not_read(tmp_path):
    for size in (4096, 4097):
        told = header("a", tarfile.REGTYPE)
        told.pax_headers = {"comment": "c" * (size - len("4096 comment=\n"))}
        source = tar(tmp_path / "a.tgz", told, (PLACE, b""))
        if size == 4096:
            assert list(unpacked(source)) == [PLACE]
            continue
        with pytest.raises(RecordingError, match="a header that is no set's"):
            unpacked(source)
    kinds = (tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE)
    for kind in (*kinds, tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK):
        with gzip.open(tmp_path / "a.tgz", "wb") as file:
            file.write(header("a", kind, 4097).tobuf(tarfile.GNU_FORMAT) + bytes(10_000))
        with pytest.raises(RecordingError, match="a header that is no set's"):
            unpacked(tmp_path / "a.tgz")
    source = tmp_path / "a.tgz"
    digits = b"1" * 100_000
    with gzip.open(source, "wb") as file:
        file.write(header("a", tarfile.XHDTYPE, len(digits)).tobuf() + digits + bytes(10_000))
    with pytest.raises(RecordingError, match="a header that is no set's"):
        unpacked(source)


def test_a_zip_may_not_hide_how_long_its_table_is(tmp_path, monkeypatch):
    source = zipped(tmp_path / "a.zip", (PLACE, b"{}"))
    whole = source.read_bytes()
    at = whole.rfind(b"PK\5\6")
    source.write_bytes(whole[: at + 12] + struct.pack("<I", 2**31) + whole[at + 16 :])
    with pytest.raises(RecordingError, match="breaks off, or has more than"):
        unpacked(source)
    source.write_bytes(whole[:at] + b"PK\6\7" + bytes(16) + whole[at:])
    with pytest.raises(RecordingError, match="breaks off, or has more than"):
        unpacked(source)
    source.write_bytes(whole[: at + 16] + b"PK\5\6" + whole[at + 20 :])  # as if the end began there
    with pytest.raises(RecordingError, match="breaks off, or has more than"):
        unpacked(source)
    monkeypatch.setattr(archives, "MOST_FILES", 1)
    named = zipfile.ZipInfo(PLACE)
    for size in (512, 513):  # of the table's one entry
        named.comment = bytes(size - 46 - len(PLACE))
        zipped(source, (named, b"{}"))
        if size == 512:
            assert list(unpacked(source)) == [PLACE]
            continue
        with pytest.raises(RecordingError, match="breaks off, or has more than 1 files"):
            unpacked(source)


def test_what_is_no_archive_is_one_error_that_says_so(tmp_path):
    with pytest.raises(BadParameter, match=r"There is no nothing\.tgz"):
        unpacked(tmp_path / "nothing.tgz")
    (tmp_path / "a.tgz").write_text("neither")
    with pytest.raises(RecordingError, match=r"neither a \.tar\.gz nor a \.zip"):
        unpacked(tmp_path / "a.tgz")
    (tmp_path / "empty").mkdir()
    for empty in (tmp_path / "empty", zipped(tmp_path / "empty.zip")):
        with pytest.raises(RecordingError, match="holds no recording: none of its 0 files"):
            unpacked(empty)
    with pytest.raises(RecordingError, match="neither a plain file nor a folder"):
        unpacked(tmp_path.__class__("/dev/null"))


def test_of_a_set_that_breaks_off_nothing_is_read(tmp_path):
    file = save(tmp_path / "recordings").read_bytes()
    entries = (PLACE, file), (f"{PLACE}.bin", random.Random(7).randbytes(2**16))
    as_tar, as_zip = tar(tmp_path / "a", *entries), zipped(tmp_path / "b", *entries)
    as_tar.write_bytes(as_tar.read_bytes()[: -(2**15)])
    as_zip.write_bytes(b"lost".join(as_zip.read_bytes().rsplit(b"PK\3\4", 1)))  # of the second
    for source in (as_tar, as_zip):
        with pytest.raises(RecordingError, match=f"^{source.name} can't be unpacked: [A-Z]"):
            unpacked(source)


def test_a_damaged_archive_is_one_error_whatever_was_damaged(tmp_path):
    file = save(tmp_path / "recordings").read_bytes()
    random.seed(7)
    wholes = (tar(tmp_path / "a", (PLACE, file)), zipped(tmp_path / "b", (PLACE, file)))
    for whole in [each.read_bytes() for each in wholes]:
        for _ in range(150):
            damaged = bytearray(whole[: random.choice([len(whole), random.randrange(len(whole))])])
            for _ in range(random.randrange(4)):
                if damaged:
                    damaged[random.randrange(len(damaged))] = random.randrange(256)
            (tmp_path / "damaged").write_bytes(damaged)
            try:
                unpacked(tmp_path / "damaged")
            except AnatomyError as error:
                assert str(error).endswith((".", "one."))


def test_an_archive_that_can_not_be_written_is_one_error(tmp_path):
    save(tmp_path / "recordings")
    found = recording.all_recordings(tmp_path / "recordings")
    with pytest.raises(RecordingError, match="could not be written"):
        archives.pack(found, tmp_path / "nowhere" / "a.tgz")
