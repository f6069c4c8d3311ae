"""The words that papers and authors are made of. No paper or author is a real one."""

from __future__ import annotations

__all__ = [
    "FIRST_NAMES",
    "KEYWORDS",
    "LAST_NAMES",
    "MANNERS",
    "METHODS",
    "ORGANIZATIONS",
    "TOPICS",
    "VENUES",
]

FIRST_NAMES = (
    "Alma",
    "Bastian",
    "Celeste",
    "Dmitri",
    "Eleni",
    "Finn",
    "Greta",
    "Hiro",
    "Ines",
    "Jakub",
    "Kavya",
    "Leo",
    "Maren",
    "Nadir",
    "Olga",
    "Piet",
    "Ruth",
    "Sanna",
    "Tomas",
    "Yara",
)
"""First names of authors."""

LAST_NAMES = (
    "Albrecht",
    "Bjornstad",
    "Castellan",
    "Dorough",
    "Eskola",
    "Fontana",
    "Grabow",
    "Hoshino",
    "Iversen",
    "Jelinek",
    "Kapoor",
    "Lindqvist",
    "Marchetti",
    "Novotny",
    "Okafor",
    "Petersen",
    "Quarles",
    "Rahimi",
    "Sandoval",
    "Tamura",
)
"""Last names of authors."""

ORGANIZATIONS = (
    "Aalborg Institute of Measurement",
    "Bay of Kotor University",
    "Carpathian Technical University",
    "Delta Research Laboratories",
    "Eastmoor College",
    "Fjordland University",
    "Granite Hills University",
    "Harbour Systems Research",
)
"""Where authors work."""

VENUES = (
    ("Conference on Adaptive Systems", "Conference"),
    ("Symposium on Graphs and Networks", "Conference"),
    ("Workshop on Sensing and Signals", "Conference"),
    ("Meeting on Applied Learning", "Conference"),
    ("Journal of Data Methods", "Journal"),
    ("Annals of Computing Practice", "Journal"),
    ("Letters in Machine Perception", "Journal"),
)
"""Where papers are published, with the type of document."""

MANNERS = (
    "Adaptive",
    "Compact",
    "Distributed",
    "Faithful",
    "Gradual",
    "Hierarchical",
    "Interpretable",
    "Lightweight",
    "Noise-Aware",
    "Robust",
    "Sparse",
    "Two-Stage",
)
"""What titles begin with."""

METHODS = (
    "Attention",
    "Clustering",
    "Contrastive Learning",
    "Graph Convolution",
    "Kernel Regression",
    "Message Passing",
    "Sampling",
    "Self-Training",
    "Spectral Filtering",
)
"""What titles go on with."""

TOPICS = (
    "Bird Song Recognition",
    "Bridge Inspection",
    "Crop Yield Maps",
    "Ferry Timetables",
    "Glacier Images",
    "Handwriting",
    "Library Catalogues",
    "Noise in City Streets",
    "Protein Folding",
    "River Flood Warning",
    "Satellite Orbits",
    "Wind Farm Control",
)
"""What papers are about."""

KEYWORDS = (
    "active learning",
    "anomaly detection",
    "benchmark",
    "calibration",
    "data fusion",
    "energy use",
    "forecasting",
    "graph learning",
    "open data",
    "privacy",
    "remote sensing",
    "uncertainty",
)
"""Keywords of papers."""
