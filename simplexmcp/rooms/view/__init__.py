"""`simplexmcp rooms view`: the rooms as a page on 127.0.0.1, where a person reads along and writes.

`command` starts it, `server` puts the site together; `api` answers requests, `news` tells tabs of every change.
`handles` opens the database, `reading` and `people` are the statements of the two.
"""
