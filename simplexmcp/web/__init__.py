"""Pages on 127.0.0.1 for a person at this computer: HTTP, WebSockets and static files, closed to everybody else.

A site is data, and is served by one call:

    site = Site(
        name="phone",                                   # its cookie is simplexmcp-phone-PORT
        token=new_token(),                              # None: no authentication, but the same Host and Origin rules
        assets=load_assets("simplexmcp.phone.assets"),  # all its files: /assets/NAME; `pages` names what is shown at /
        pages={"/": "index.html"},
        routes={("GET", "/file"): handler},             # async (Request) -> Answer; raises HttpRefusal
        sockets={"/stream": handler},                   # async (Socket, Request) -> None
        rules=Rules(),                                  # where it is more open than the strictest site
        refuse=text_answer,                             # the form of what is refused before a handler
    )
    port = await nursery.start(serve_site, site, listen(5231))

Modules: `site` (the app), `checks` (who may ask: pure), `answers` (headers and answers), `socket` (a WebSocket with
bounded queues), `assets`, `serving` and `connection` (hypercorn; the listener's base too). `assets/base.css` is the
look that all pages have in common.
"""
