"""One computation graph as data: the record, its operators, and the way to and from torch.fx."""
