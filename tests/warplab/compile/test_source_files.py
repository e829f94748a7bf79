"""Display names of source files."""

from warplab.compile import source_files


def test_files_of_one_base_name_stay_apart():
    ptx = '\t.file\t1 "/a/k.cu"\n\t.file\t2 "/b/k.cu"\n\t.file\t3 "given"\n'
    labelled, texts = source_files.label_files(ptx, {"given": "text"})
    assert list(texts) == ["k.cu", "b/k.cu", "given"]
    assert texts["given"] == "text"
    assert '.file\t2 "b/k.cu"' in labelled


def test_all_lines_of_inline_assembly_have_its_statements_place():
    before, inside, after = (
        "\t.loc\t1 8 23\n\t// begin inline asm\n",
        "\tmov.u32 %r1, 0x0;\n",
        "\t// end inline asm\n\t.loc\t1 9 1\n",
    )
    counted = f"{before}\t.loc\t1 8 23\n{inside}\t.loc\t1 9 23\n{inside}{after}"
    assert source_files.label_files(counted)[0] == before + inside + inside + after
