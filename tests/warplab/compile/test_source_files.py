"""Display names of source files."""

from warplab.compile import source_files


def test_files_of_one_base_name_stay_apart():
    ptx = '\t.file\t1 "/a/k.cu"\n\t.file\t2 "/b/k.cu"\n\t.file\t3 "given"\n'
    labelled, texts = source_files.label_files(ptx, {"given": "text"})
    assert list(texts) == ["k.cu", "b/k.cu", "given"]
    assert texts["given"] == "text"
    assert '.file\t2 "b/k.cu"' in labelled
