"""Time, tasks and event loops: clocks, owners of tasks, rate limits, the length of turns.

In: coroutines, callbacks and times. Out: tasks with an owner, timers, results for other threads.

`clock` is the time, `tasks` starts tasks and ends them, `concurrently` and `work` bound what is
done at once and in one turn; `loop_thread` runs a loop for blocking callers, `loop_watch` tells who
blocks one. Nobody else reads the time or starts tasks.
"""
