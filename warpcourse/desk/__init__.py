"""The learner's desk: their own copy of lessons and exercises, JupyterLab opened on it, and what is done and next.

`own_version` makes a learner's notebook of a shipped one, `copies` brings it to the learner's folder, `lab_command`
opens JupyterLab there with the settings in jupyter/, `progress` reads what was done, and `progress_page` shows it.
"""
