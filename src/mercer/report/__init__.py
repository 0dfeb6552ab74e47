"""A fit told on one page: data, search, proof, certificate, errors, calibration, columns, rows, how to reproduce."""

from mercer.report.page import render, write_report
from mercer.report.story import Story

__all__ = ["Story", "render", "write_report"]
