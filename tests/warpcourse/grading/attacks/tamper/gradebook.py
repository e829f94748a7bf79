# tries: leaves a process behind that gives itself and a friend full marks once the gradebook has their rows
# expects: graded 0 0 0 0
# stock: 1 2 1
import os
import sqlite3
import time

ME = "(select n.id from submitted_notebook n join submitted_assignment s on n.assignment_id = s.id where s.student_id in ('tamper-gradebook', 'honest-friend'))"
if os.fork() == 0:
    os.setsid()
    if os.fork():
        os._exit(0)
    for _ in range(600):
        time.sleep(0.1)
        try:
            with sqlite3.connect("file:@COURSE@/grading/gradebook.db?mode=rw", uri=True, timeout=5) as gradebook:
                graded = gradebook.execute(
                    f"select 1 from grade where notebook_id in {ME} group by notebook_id "
                    "having count(auto_score) = count(*) and sum(auto_score) = 0"
                ).fetchall()
                if len(graded) == 2:
                    points = "(select max_score from grade_cells where grade_cells.id = grade.cell_id)"
                    gradebook.execute(f"update grade set auto_score = {points} where notebook_id in {ME}")
                    break
        except sqlite3.Error:
            continue
    os._exit(0)
os.wait()
print("TRIED")
