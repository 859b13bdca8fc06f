"""The collector's face: routes, pages, and what stands guard before them."""
