"""The shadow: what the manual promises, looked at once more in the morning, pass by pass, from the journal.

It is written apart from the scheduler (`core`, `engine`), which it may not import (`setup.cfg`): the words of
`model`, and of requests what an event makes of them, are all it has. It proposes nothing and sorts nothing:
of each start it asks whether the rules allowed it then, of each request that waits whether it had to start
instead. What a user exit decided cannot be found again from the journal: such passes are judged as far as
they can be, and counted.

`followed`: the site as the journal tells it. `claims`: what a request takes of which limit. `rules`: why one
may not start. `promises`: what is kept for others. `turns`: who stands before whom. `judge`: pass by pass.
"""
