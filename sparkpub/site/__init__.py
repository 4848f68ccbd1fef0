"""Dataset -> pages: build, figures, chart compilation, browser assets."""
