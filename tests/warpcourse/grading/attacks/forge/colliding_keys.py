# tries: answers with dicts whose keys all have one hash, which keep whoever reads them busy
# expects: graded 0 0 0 0
same = (1 << 61) - 1
answer_of_all = {key * same: None for key in range(45_000)}


def double(x):
    return answer_of_all


# %% answer
answer = answer_of_all
