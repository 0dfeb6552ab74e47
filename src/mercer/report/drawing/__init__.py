"""Drawings and prose of a report: SVG, scales, blocks of a page."""
