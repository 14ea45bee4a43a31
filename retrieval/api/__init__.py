"""The HTTP interface: `app.create_app` makes the application, `server.run` serves it."""
