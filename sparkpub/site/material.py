"""The name of the theme, which mkdocs.yml takes from here: so this is read before MkDocs loads the theme.

The theme prints a notice of its own as it is loaded, unless an environment variable says that it is known. MkDocs loads
plugins and hooks after the theme; a name of Python in mkdocs.yml alone comes before it.
"""

import os

NAME = "material"

os.environ.setdefault("NO_MKDOCS_2_WARNING", "1")
