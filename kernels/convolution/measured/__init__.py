"""What is timed on a GPU; `measurements` lists it by the keys of recordings.json."""
