"""Support vector machines by their dual problem: SMO, decomposition, interior points, hard margins and tubes."""
