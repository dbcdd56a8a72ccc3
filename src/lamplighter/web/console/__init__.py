"""The web console: pages for people, made on the server from the answers of operations, and kept fresh by signals."""
