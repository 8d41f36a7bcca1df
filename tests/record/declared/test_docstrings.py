"""The Args section of a docstring is the help that commands and tables show."""

from anatomy.record.signatures import arguments, summary

DOC = """Time one operation
    on every layout.

    More words, with a colon: they are no argument.

    Args:
        m: Rows M of A.
        dtype (str): Number format;
            tf32: float32 tensors whose products may use TF32.
        iters: Least number of samples.

        Note: an entry too.

    Returns:
        table: Not an argument.
    """


def test_the_summary_is_the_first_paragraph_in_one_line():
    assert summary(DOC) == "Time one operation on every layout."
    assert summary("") == ""


def test_arguments_come_with_their_continuation_lines_and_nothing_else():
    assert arguments(DOC) == {
        "m": "Rows M of A.",
        "dtype": "Number format; tf32: float32 tensors whose products may use TF32.",
        "iters": "Least number of samples.",
        "Note": "an entry too.",
    }


def test_a_docstring_without_arguments_has_none():
    assert arguments("One line.") == {} == arguments("")
