"""Time, tasks and event loops: what runs when, who waits for it, and how long a turn may take.

In: coroutines, callbacks and times. Out: tasks with an owner, timers, results for other threads.

`clock` is the time, `tasks` starts tasks and ends them, `concurrently` and `work` bound what is
done at once and in one turn; `loop_thread` runs a loop for blocking callers, `loop_watch` tells who
blocks one. Nobody else reads the time or starts tasks.
"""
