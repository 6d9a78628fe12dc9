"""Commands that watch a running cluster; each module is named after its command.

In: options, and answers of a cluster. Out: lines, tables and JSON for operators.
`tail` follows topics, `top` shows what is busy, `doctor` says what is wrong,
`support-bundle` collects what helps to find out, `drain` has a broker hand over what it serves.
"""
