# tries: covers the page with a score of its own, sends readers elsewhere, and loads pictures that tell who reads
# expects: graded 0 0 0 0
# edit: cover_the_page
def double(x):
    return x
