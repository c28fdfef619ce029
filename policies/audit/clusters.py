"""What Kubernetes Engine made and keeps as it wants it: whoever changes it by hand breaks a cluster, or sees it undone.

Source: labels that Google puts on nodes and volumes,
https://cloud.google.com/kubernetes-engine/docs/how-to/creating-managing-labels
"""

from __future__ import annotations

from typing import Final

from policies.audit.subjects import Subject

NAME: Final = "goog-k8s-cluster-name"
MARKS: Final = ("goog-gke-node", "goog-gke-volume", NAME)
"""Labels of which it has at least one; those of nodes and volumes are empty."""


def in_cluster(subject: Subject) -> str:
    """The cluster that a resource is of, in words; empty where it is of none."""
    labels = dict(subject.labels)
    if not any(mark in labels for mark in MARKS):
        return ""
    return f"the cluster {labels[NAME]}" if labels.get(NAME) else "a cluster of Kubernetes Engine"
