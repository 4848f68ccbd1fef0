"""The site: a dataset in, a docs tree out, for any engine that turns Markdown into pages."""
